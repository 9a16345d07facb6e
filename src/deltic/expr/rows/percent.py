"""Text in URLs (application/x-www-form-urlencoded), and the parts of a URL as java.net.URI has them."""

from __future__ import annotations

import re
import urllib.parse
from dataclasses import dataclass
from typing import Final

from deltic.expr.rows.java_matching import JavaPattern, first

_ESCAPE: Final = re.compile(r"(?:%[0-9a-fA-F+][0-9a-fA-F])+")  # Java reads the digits as a number, so that one may be a plus
_UNRESERVED: Final = r"a-zA-Z0-9_\-!.~'()*"
_OTHER: Final = r"\u00a1-\u1fff\u2010-\u2027\u202a-\u202e\u2030-\u205e\u2060-\u2fff\u3001-\U0010ffff"
_CHARACTER: Final = rf"(?:[{_UNRESERVED}{_OTHER}]|%[0-9a-fA-F]{{2}})"
_PATH: Final = rf"(?:{_CHARACTER}|[:@&=+$,;/])*"
_QUERY: Final = rf"(?:{_CHARACTER}|[;/?:@&=+$,\[\]])*"
_HIERARCHICAL: Final = re.compile(
    rf"(?:(?P<scheme>[a-zA-Z][a-zA-Z0-9+.\-]*):)?"
    rf"(?://(?P<authority>(?:{_CHARACTER}|[;:@&=+$,\[\]%])*))?"
    rf"(?P<path>{_PATH})(?:\?(?P<query>{_QUERY}))?(?:\#(?P<ref>{_QUERY}))?",
)
_OPAQUE: Final = re.compile(rf"(?P<scheme>[a-zA-Z][a-zA-Z0-9+.\-]*):(?!/){_QUERY}(?:\#(?P<ref>{_QUERY}))?")
_LAST_PORT: Final = 2**31 - 1
_SERVER: Final = re.compile(
    rf"(?:(?P<user>(?:{_CHARACTER}|[;:&=+$,])*)@)?"
    r"(?P<host>\[[0-9a-fA-F:.]+(?:%[a-zA-Z0-9_.\-]+)?\]|[0-9]{1,3}(?:\.[0-9]{1,3}){3}"
    r"|[a-zA-Z0-9](?:[a-zA-Z0-9\-]*[a-zA-Z0-9])?\.?|(?:[a-zA-Z0-9](?:[a-zA-Z0-9\-]*[a-zA-Z0-9])?\.)+[a-zA-Z](?:[a-zA-Z0-9\-]*[a-zA-Z0-9])?\.?)"
    r"(?::(?P<port>[0-9]*))?"
)


def encode(text: str) -> str:
    """As an HTML form sends it: a blank as +, and all but letters, digits and .-*_ as %XX of UTF-8."""
    return urllib.parse.quote_plus(text, safe="*").replace("~", "%7E")


def decode(text: str) -> str | None:
    """The text of a form; bytes that are no UTF-8 become U+FFFD. None for a % without two hexadecimal digits."""
    parts: list[str] = []
    last = 0
    for match in _ESCAPE.finditer(text):
        parts += text[last : match.start()], bytes(int(digits, 16) for digits in match[0][1:].split("%")).decode(errors="replace")
        last = match.end()
    plain = [*parts[::2], text[last:]]
    if any("%" in part for part in plain):
        return None
    parts.append(text[last:])
    return "".join(part if k % 2 else part.replace("+", " ") for k, part in enumerate(parts))


@dataclass(frozen=True, slots=True)
class Url:
    """The parts of a URL; None where it has none."""

    scheme: str | None
    authority: str | None
    user: str | None
    host: str | None
    path: str | None
    query: str | None
    ref: str | None

    def part(self, name: str) -> str | None:
        """The part by Spark's name for it; None for another name."""
        match name:
            case "HOST":
                return self.host
            case "PATH":
                return self.path
            case "QUERY":
                return self.query
            case "REF":
                return self.ref
            case "PROTOCOL":
                return self.scheme
            case "FILE":
                return f"{self.path}?{self.query}" if self.query is not None and self.path is not None else self.path
            case "AUTHORITY":
                return self.authority
            case "USERINFO":
                return self.user
            case _:
                return None


def parse(text: str) -> Url | None:
    """The parts of a URL; None for text that java.net.URI refuses.

    >>> parse("http://u@h:80/p?q#r")
    Url(scheme='http', authority='u@h:80', user='u', host='h', path='/p', query='q', ref='r')
    """
    if opaque := _OPAQUE.fullmatch(text):
        return None if text.endswith(":") else Url(opaque["scheme"], None, None, None, None, None, opaque["ref"])
    match = _HIERARCHICAL.fullmatch(text)
    if match is None:
        return None
    scheme, authority, path = match["scheme"], match["authority"], match["path"]
    if authority == "" and not path:
        return None
    if authority is not None and path and not path.startswith("/"):
        return None
    if scheme is None and authority is None and ":" in path.split("/")[0]:
        return None
    server = _SERVER.fullmatch(authority) if authority else None
    if server and int(server["port"] or 0) > _LAST_PORT:
        server = None
    if authority and server is None and ("[" in authority or "]" in authority):
        return None
    user, host = (server["user"], server["host"]) if server else (None, None)
    return Url(scheme, authority or None, user, host, path, match["query"], match["ref"])


def value_of(query: str, key: JavaPattern) -> str | None:
    """The value of the first parameter of a query that the pattern of a key finds; None if there is none."""
    match = first(key, query)
    return match[2] if match else None
