"""The order of Java's hash maps; test_assignors of golden has what follows from it."""

from __future__ import annotations

from kclient.consumer.assignor.internals.java_order import hash_map_order


def test_keys_come_by_their_hash_codes_as_in_java() -> None:
    # Of Java: "hello" has 99162322, "a" 97, "b" 98, "z" 122, "" 0.
    assert hash_map_order(["z", "b", "a", "", "hello"]) == ["", "a", "b", "z", "hello"]


def test_keys_of_one_bucket_come_in_the_order_in_which_they_were_put_in() -> None:
    assert hash_map_order(["Aa", "BB"]) == ["Aa", "BB"]  # the well-known pair with one hash code
    assert hash_map_order(["BB", "Aa"]) == ["BB", "Aa"]


def test_a_map_that_is_three_quarters_full_has_twice_the_buckets() -> None:
    twelve = [chr(97 + n) for n in range(12)]  # hash codes 97 to 108: buckets 1 to 12 of 16
    assert hash_map_order([*twelve, "z"])[-1] == "z"  # bucket 26 of 32, and 10 of 16
    assert hash_map_order([*twelve[:11], "z"])[-1] == "k"


def test_characters_count_as_the_units_of_utf_16() -> None:
    face = "\N{GRINNING FACE}"  # to Java \uD83D\uDE00, with the hash code 1772899: bucket 8
    assert hash_map_order(["k", face, "e"]) == ["e", face, "k"]
