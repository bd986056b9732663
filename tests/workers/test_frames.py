"""Messages are JSON objects on lines of their own, and what is invalid ends the stream."""

import itertools
import json

import pytest

from agentos.workers.frames import DEPTH_LIMIT, FrameError, Frames, FrameTooLargeError, encode_frame


def test_a_message_is_read_back_however_its_bytes_are_cut():
    sent = [{"id": 1, "op": "x", "body": "a\nb \u2028 \ud800"}, {"re": 1, "value": [1, 2.5, None, True]}]
    line = b"".join(map(encode_frame, sent))

    for size in (1, 2, 7, len(line)):
        frames = Frames()
        got = [one for at in range(0, len(line), size) for one in frames.feed(line[at : at + size])]
        assert sent == got


def test_the_messages_before_an_invalid_one_are_given_out_first():
    got, frames = [], Frames()

    with pytest.raises(FrameError, match="not JSON"):
        got.extend(frames.feed(b'{"re": 1}\nno\n{"re": 2}\n'))

    assert got == [{"re": 1}]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"\xff\xfe\n", "not UTF-8"),
        (b"hello\n", "not JSON"),
        (b"\n", "not JSON"),
        (b"[1]\n", "not an object"),
        (b'"x"\n', "not an object"),
        (b'{"v": ' + b"1" * 5_000 + b"}\n", "not JSON"),
        (b'{"v": ' + b"[" * 10_000 + b"]" * 10_000 + b"}\n", "deeper than 512"),
        (b'{"v": ' + b"[" * 600 + b"]" * 600 + b"}\n", "deeper than 512"),
        (b'{"v":' * 100_000 + b"\n", "deeper than 512"),
    ],
)
def test_an_invalid_message_is_named_and_nothing_behind_it_is_read(data, says):
    frames = Frames()

    with pytest.raises(FrameError, match=says):
        list(frames.feed(data))
    with pytest.raises(FrameError, match=says):
        list(frames.feed(b'{"re": 1}\n'))


def test_a_message_may_be_as_deep_as_the_limit_says():
    levels = DEPTH_LIMIT - 1
    line = b'{"v": ' + b"[" * levels + b"]" * levels + b"}\n"

    assert len(list(Frames().feed(line))) == 1


def test_many_brackets_are_not_depth():
    message = {"body": [[]] * 5_000}

    assert [message] == list(Frames().feed(encode_frame(message)))


def test_an_endless_line_is_refused_as_soon_as_it_is_too_long_and_is_not_kept():
    frames = Frames(limit=1_000)

    with pytest.raises(FrameTooLargeError, match=r"at most 1000 are allowed"):
        list(itertools.chain.from_iterable(frames.feed(b"x" * 100) for _ in range(100_000)))

    assert frames._parts == []


def test_a_long_line_that_came_whole_is_refused():
    with pytest.raises(FrameTooLargeError):
        list(Frames(limit=100).feed(json.dumps({"v": "x" * 200}).encode() + b"\n"))


def test_a_message_that_is_too_large_is_not_written():
    with pytest.raises(FrameTooLargeError, match="a message of 211 bytes; at most 100"):
        encode_frame({"body": "x" * 200}, 100)
