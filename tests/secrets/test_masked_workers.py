"""What a pack in a process of its own says is masked before it is cut: no half of a value is left at the end."""

import logging
from types import SimpleNamespace

import pytest

from agentos.secrets.masking import Masker, MaskingLogger
from agentos.workers.host_answers import HostAnswers
from agentos.workers.wire_values import decode_error, encode_error
from agentos.workers.worker_log import WorkerLog

SECRET = "s3cr3t-v4lue-of-x"


@pytest.fixture
def masker():
    masker = Masker()
    masker.learn(SECRET)
    return masker


@pytest.mark.parametrize("length", [10_000, 100])
async def test_a_record_that_is_cut_within_a_value_has_nothing_of_it(masker, caplog, length):
    caplog.set_level(logging.INFO)
    answers = HostAnswers(SimpleNamespace(_secrets=masker, logger=MaskingLogger("agentos.packs.x", masker)))
    text = "x" * (length - 8) + SECRET
    await answers.handle("log", {"level": logging.INFO, "name": text, "text": text})

    assert SECRET[:6] not in caplog.text


def test_what_is_noted_of_a_worker_is_masked_before_it_is_cut(masker):
    log = WorkerLog(masker.mask)
    log.begin(MaskingLogger("agentos.packs.x", masker))
    log.log(logging.INFO, "%s", "x" * 3_992 + SECRET)

    assert SECRET[:6] not in log._lines[0][1]


class Nameless(type):
    @property
    def __name__(cls):
        raise SystemExit("no name")


class Mute(Exception, metaclass=Nameless):
    def __str__(self):
        raise SystemExit("no text")


def test_an_error_that_says_nothing_crosses():
    said = encode_error(Mute())

    assert said["type"] == "Mute"
    assert "can't be shown" in str(decode_error(said))
