"""The system's GSSAPI library (RFC 2744), MIT's or one that is like it, as far as a client of SASL needs it."""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Mapping
from functools import cache
from typing import Any

from kclient.errors import ConfigError, SaslAuthenticationError

_CONTINUE_NEEDED = 1
_INITIATE = 1  # usage of credentials
_MUTUAL, _SEQUENCE, _INTEGRITY = 2, 8, 32  # flags of a context
_GSS_CODE, _MECHANISM_CODE = 1, 2  # kinds of status
# Errors of Kerberos that may pass: no KDC answers, or none of its names can be resolved.
_MAY_PASS = frozenset({-1765328228, -1765328164, -1765328230})


class _Buffer(ctypes.Structure):
    _fields_ = (("length", ctypes.c_size_t), ("value", ctypes.c_void_p))

    @classmethod
    def of(cls, data: bytes) -> _Buffer:
        """Return a buffer over `data`, which has to live as long."""
        return cls(len(data), ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p))


class _Oid(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint32), ("elements", ctypes.c_char_p))


class _OidSet(ctypes.Structure):
    _fields_ = (("count", ctypes.c_size_t), ("elements", ctypes.POINTER(_Oid)))


class _KeyValue(ctypes.Structure):
    _fields_ = (("key", ctypes.c_char_p), ("value", ctypes.c_char_p))


class _KeyValues(ctypes.Structure):
    _fields_ = (("count", ctypes.c_uint32), ("elements", ctypes.POINTER(_KeyValue)))


def _oid(encoded: bytes) -> _Oid:
    return _Oid(len(encoded), encoded)


_KERBEROS = _oid(b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02")  # 1.2.840.113554.1.2.2
_USER_NAME = _oid(b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x01\x01")  # 1.2.840.113554.1.2.1.1
_SERVICE_NAME = _oid(b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x01\x04")  # 1.2.840.113554.1.2.1.4

_STATUS, _HANDLE, _FLAGS = ctypes.POINTER(ctypes.c_uint32), ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint32
_BYTES, _OID_POINTER = ctypes.POINTER(_Buffer), ctypes.POINTER(_Oid)
_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "gss_import_name": (_STATUS, _BYTES, _OID_POINTER, _HANDLE),
    "gss_release_name": (_STATUS, _HANDLE),
    "gss_acquire_cred_from": (
        *(
            _STATUS,
            ctypes.c_void_p,
            _FLAGS,
            ctypes.POINTER(_OidSet),
            ctypes.c_int,
            ctypes.POINTER(_KeyValues),
        ),
        *(_HANDLE, ctypes.c_void_p, ctypes.c_void_p),
    ),
    "gss_release_cred": (_STATUS, _HANDLE),
    "gss_init_sec_context": (
        *(_STATUS, ctypes.c_void_p, _HANDLE, ctypes.c_void_p, _OID_POINTER, _FLAGS, _FLAGS, ctypes.c_void_p),
        *(_BYTES, ctypes.c_void_p, _BYTES, ctypes.c_void_p, ctypes.c_void_p),
    ),
    "gss_delete_sec_context": (_STATUS, _HANDLE, ctypes.c_void_p),
    "gss_wrap": (_STATUS, ctypes.c_void_p, ctypes.c_int, _FLAGS, _BYTES, ctypes.c_void_p, _BYTES),
    "gss_unwrap": (_STATUS, ctypes.c_void_p, _BYTES, _BYTES, ctypes.c_void_p, ctypes.c_void_p),
    "gss_display_status": (_STATUS, _FLAGS, ctypes.c_int, _OID_POINTER, _STATUS, _BYTES),
    "gss_release_buffer": (_STATUS, _BYTES),
}


class Name:
    """A name of GSSAPI: of a service, "kafka@host", or of a user, "alice@REALM"."""

    def __init__(self, text: str, *, service: bool) -> None:
        self.handle = ctypes.c_void_p()
        data = text.encode()
        kind = _SERVICE_NAME if service else _USER_NAME
        _call("gss_import_name", _Buffer.of(data), ctypes.byref(kind), ctypes.byref(self.handle))

    def __del__(self) -> None:
        if self.handle.value is not None:
            _release("gss_release_name", self.handle)


class Credentials:
    """Credentials of a client, of a user or of whoever the store holds them for.

    `store` has MIT's keys, such as client_keytab and ccache. Tickets from a key table are fetched when they are needed.
    """

    def __init__(self, user: Name | None, store: Mapping[str, str]) -> None:
        self.handle = ctypes.c_void_p()
        pairs = [_KeyValue(key.encode(), value.encode()) for key, value in store.items()]
        elements = (_KeyValue * len(pairs))(*pairs)
        _call(
            "gss_acquire_cred_from",
            None if user is None else user.handle,
            0xFFFFFFFF,  # for as long as possible
            ctypes.byref(_OidSet(1, ctypes.pointer(_KERBEROS))),
            _INITIATE,
            ctypes.byref(_KeyValues(len(pairs), elements)) if pairs else None,
            ctypes.byref(self.handle),
            None,
            None,
        )

    def __del__(self) -> None:
        if self.handle.value is not None:
            _release("gss_release_cred", self.handle)


class Context:
    """The security context of one exchange with a service."""

    def __init__(self, credentials: Credentials, service: Name) -> None:
        self._handle = ctypes.c_void_p()
        self._credentials, self._service = credentials, service
        self.complete = False

    def step(self, token: bytes) -> bytes:
        """Return the answer to the peer's token, which is empty at first. May block for the KDC."""
        answer = _Buffer()
        try:
            status = _call(
                "gss_init_sec_context",
                self._credentials.handle,
                ctypes.byref(self._handle),
                self._service.handle,
                ctypes.byref(_KERBEROS),
                _MUTUAL | _SEQUENCE | _INTEGRITY,
                0,
                None,
                ctypes.byref(_Buffer.of(token)) if token else None,
                None,
                ctypes.byref(answer),
                None,
                None,
            )
            self.complete = status != _CONTINUE_NEEDED
            return _content(answer)
        finally:
            _release("gss_release_buffer", answer)

    def wrap(self, data: bytes) -> bytes:
        """Return `data` with a proof of where it comes from, not hidden."""
        wrapped = _Buffer()
        try:
            _call("gss_wrap", self._handle, 0, 0, _Buffer.of(data), None, ctypes.byref(wrapped))
            return _content(wrapped)
        finally:
            _release("gss_release_buffer", wrapped)

    def unwrap(self, data: bytes) -> bytes:
        """Return what the peer wrapped. Raises SaslAuthenticationError if it was not the peer."""
        found = _Buffer()
        try:
            _call("gss_unwrap", self._handle, _Buffer.of(data), ctypes.byref(found), None, None)
            return _content(found)
        finally:
            _release("gss_release_buffer", found)

    def __del__(self) -> None:
        if self._handle.value is not None:
            _library().gss_delete_sec_context(
                ctypes.byref(ctypes.c_uint32()), ctypes.byref(self._handle), None
            )


@cache
def _library() -> ctypes.CDLL:
    found = ctypes.util.find_library("gssapi_krb5") or ctypes.util.find_library("gssapi")
    try:
        library = ctypes.CDLL(found or "libgssapi_krb5.so.2")
        for name, arguments in _ARGUMENTS.items():
            function = getattr(library, name)
            function.argtypes, function.restype = arguments, ctypes.c_uint32
    except (OSError, AttributeError) as error:
        raise ConfigError(
            "sasl.mechanism GSSAPI needs MIT's Kerberos library (libgssapi-krb5-2 on Debian and Ubuntu, krb5-libs on "
            f"Red Hat, krb5 of Homebrew): {error}",
            name="sasl.mechanism",
        ) from None
    return library


def _call(name: str, *arguments: Any) -> int:
    """Return the status. Raises SaslAuthenticationError, or ConnectionError for what may pass."""
    minor = ctypes.c_uint32()
    status = int(getattr(_library(), name)(ctypes.byref(minor), *arguments))
    if status >> 16:
        text = f"{_text(status, _GSS_CODE)} {_text(minor.value, _MECHANISM_CODE)}".strip()
        if ctypes.c_int32(minor.value).value in _MAY_PASS:
            raise ConnectionError(f"Kerberos failed: {text}")
        raise SaslAuthenticationError(f"Kerberos failed: {text}")
    return status


def _text(code: int, kind: int) -> str:
    found, more = _Buffer(), ctypes.c_uint32()
    status = _library().gss_display_status(
        ctypes.byref(ctypes.c_uint32()),
        code,
        kind,
        ctypes.byref(_KERBEROS),
        ctypes.byref(more),
        ctypes.byref(found),
    )
    if status >> 16:
        return f"({code})"
    try:
        return _content(found).decode("utf-8", "replace")
    finally:
        _release("gss_release_buffer", found)


def _content(buffer: _Buffer) -> bytes:
    return ctypes.string_at(buffer.value, buffer.length) if buffer.value else b""


def _release(name: str, thing: Any) -> None:
    getattr(_library(), name)(ctypes.byref(ctypes.c_uint32()), ctypes.byref(thing))
