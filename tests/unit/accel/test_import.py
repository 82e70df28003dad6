"""Effects of importing the package on the program that imports it."""

from __future__ import annotations

import ctypes

import pytest

from harness.programs import run_script

_LARGE_BLOCKS = """
    import ctypes

    class Counts(ctypes.Structure):
        _fields_ = [(name, ctypes.c_size_t) for name in
                    "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]

    {imports}
    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype = Counts
    libc.malloc.argtypes = [ctypes.c_size_t]
    libc.malloc.restype = ctypes.c_void_p
    libc.free.argtypes = [ctypes.c_void_p]
    before = libc.mallinfo2().hblks
    blocks = [libc.malloc(3_000_000) for _ in range(20)]
    print(libc.mallinfo2().hblks - before)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="needs glibc 2.33")
@pytest.mark.parametrize("imports", ["", "import kclient; from kclient import KafkaConsumer, KafkaProducer"])
def test_importing_it_leaves_to_the_system_what_large_blocks_the_program_frees(imports: str) -> None:
    # Blocks that are mapped for themselves are given back when they are freed; those of the heap may stay.
    out, _ = run_script(_LARGE_BLOCKS.format(imports=imports))
    assert int(out) == 20


_WITHOUT_FORK = """
    import importlib, os, sys

    os.environ["KCLIENT_IMPL"] = sys.argv[1]
    del os.fork, os.register_at_fork
    for name in sys.argv[2:]:
        importlib.import_module(name)
"""


@pytest.mark.parametrize("body", ["python", "c"])
def test_it_is_imported_where_processes_cannot_be_forked(body: str) -> None:
    if body == "c":
        pytest.importorskip("kclient._accel.native", reason="the native body is not built")
    run_script(
        _WITHOUT_FORK,
        body,
        "kclient.producer.kafka_producer",
        "kclient.broker.embedded",
        "kclient.spark.clients",
    )
