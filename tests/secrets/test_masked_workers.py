"""What a pack in a process of its own says is masked before it is cut: no half of a value is left at the end."""

import logging
from types import SimpleNamespace

import pytest
from joined_peers import joined

from agentos.secrets.masking import Masker, MaskingLogger
from agentos.workers.host_answers import HostAnswers
from agentos.workers.wire_values import decode_error, encode_error, whole_or_nothing
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


HALF = SECRET[:6]


@pytest.mark.parametrize("length", [999_992, 1_000_000 - len(SECRET), 1_000_000, 2_000_000])
def test_the_message_of_an_error_that_is_cut_within_a_value_has_nothing_of_it(masker, length):
    error = decode_error(encode_error(ValueError("x" * length + SECRET + "y" * 100)), masker.mask)

    assert HALF not in str(error)
    assert HALF not in error.traceback_text
    assert len(str(error)) <= 1_000_000


@pytest.mark.parametrize("length", [*range(19_900, 20_000, 5)])
def test_the_traceback_of_an_error_that_begins_within_a_value_has_nothing_of_it(masker, length):
    error = decode_error(encode_error(ValueError(SECRET + "y" * length)), masker.mask)

    assert len(error.traceback_text) <= 20_000
    assert not any(SECRET[-size:] in error.traceback_text for size in (4, 8, 12))


def test_many_values_that_are_masked_bring_no_half_of_one_into_what_is_kept(masker):
    """Masking makes a text shorter: what was cut before would move to where it is kept."""
    error = decode_error(encode_error(ValueError(SECRET * 100_000)), masker.mask)
    logged = whole_or_nothing(SECRET * 100_000)

    assert SECRET[:4] not in str(error)
    assert SECRET[-4:] not in error.traceback_text
    assert SECRET[:4] not in masker.mask(logged)


def test_the_name_of_an_error_is_masked_before_it_is_cut(masker):
    error = decode_error(encode_error(type("E" * 195 + SECRET.replace("-", "_"), (Exception,), {})()), masker.mask)
    named = decode_error({"type": "E" * 195 + SECRET, "bases": [], "message": "", "traceback": ""}, masker.mask)

    assert len(type(error).__name__) == 200
    assert SECRET[:4] not in named.type


async def test_what_a_process_raises_is_masked_before_it_is_cut(masker):
    async def fails(op, body):
        raise ValueError("x" * 999_990 + SECRET)

    here, _ = joined(there=fails, mask=masker.mask)
    with pytest.raises(ValueError, match="x") as raised:
        await here.request("anything")

    assert HALF not in str(raised.value)


def test_of_a_line_that_came_in_parts_nothing_is_shown(masker):
    log = WorkerLog(masker.mask)
    log.begin(MaskingLogger("agentos.packs.x", masker))
    log.note(1, b"x" * 390 + SECRET[:10].encode() + b" ... " + b"y", False)

    assert log.lines() == ["stdout: (a line that is too long to be shown)"]
