"""A prefix cache against one that keeps a plain list."""

from hypothesis import given
from hypothesis import strategies as st

from slicewise.traffic.prefix_cache import PrefixCache

SIZE = 4
PREFIXES = st.lists(st.integers(0, 6), max_size=5, unique=True).map(tuple)


class Listed:
    """Blocks in the order of their last use, the latest last."""

    def __init__(self) -> None:
        self.blocks: list[int] = []

    def hits(self, prefix: tuple[int, ...]) -> int:
        return next((at for at, block in enumerate(prefix) if block not in self.blocks), len(prefix))

    def remember(self, prefix: tuple[int, ...], tokens: int, room: int) -> None:
        for block in prefix[: tokens // SIZE]:
            self.blocks = [each for each in self.blocks if each != block] + [block]
        most = max(room // SIZE, 0)
        self.blocks = self.blocks[len(self.blocks) - most :] if most < len(self.blocks) else self.blocks


@given(st.lists(st.tuples(PREFIXES, st.integers(1, 24), st.integers(-8, 30)), max_size=30))
def test_it_keeps_what_was_used_last(calls: list[tuple[tuple[int, ...], int, int]]) -> None:
    cache, listed = PrefixCache(SIZE), Listed()
    for prefix, tokens, room in calls:
        hits = listed.hits(prefix)
        assert cache.hits(prefix) == hits
        # Of a prompt that is cached whole, the last token has to be computed: it gives the first of the output.
        assert cache.cached_tokens(prefix, tokens) == max(
            n * SIZE for n in range(hits + 1) if n == 0 or n * SIZE < tokens
        )
        cache.remember(prefix, tokens, room)
        listed.remember(prefix, tokens, room)


def test_the_rest_of_a_prompt_is_no_block() -> None:
    cache = PrefixCache(SIZE)
    cache.remember((1, 2, 3), 11, 100)
    assert cache.hits((1, 2, 3)) == 2


def test_without_room_it_keeps_nothing() -> None:
    for room in (3, 0, -1, -100):
        cache = PrefixCache(SIZE)
        cache.remember((1, 2), 8, room)
        assert cache.hits((1, 2)) == 0
