from eqlearn.errors import counted, listed


def test_one_thing_is_not_several():
    numbers = (0, 1, 2, 12_000)

    assert [counted(n, "node") for n in numbers] == ["0 nodes", "1 node", "2 nodes", "12,000 nodes"]


def test_the_last_of_a_list_follows_an_and():
    assert [listed(list(names)) for names in ("a", "ab", "abc")] == ["a", "a and b", "a, b and c"]
