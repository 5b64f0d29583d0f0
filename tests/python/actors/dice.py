"""Dice: random numbers of the chain."""

from cowboy_sdk import actor, public, pvm_random, runtime


@actor
class Dice:
    @public
    def roll(self, count):
        rolled = [pvm_random.randint(1, 6) for _ in range(count)]
        self.storage["random:rolled"] = rolled
        self.storage["fair"] = all(1 <= number <= 6 for number in rolled)
        return len(rolled)

    @public
    def draw(self, names):
        pvm_random.seed("draw")
        self.storage["random:drawn"] = pvm_random.sample(names, 2)
        self.storage["random:bytes"] = pvm_random.randbytes(40)
        self.storage["random:raw"] = runtime.randomness(b"raw")
        self.storage["sizes"] = [len(runtime.randomness(b"")), len(pvm_random.randbytes(7))]
        same = runtime.randomness(b"same") == runtime.randomness(b"same")
        other = runtime.randomness(b"same") != runtime.randomness(b"other")
        return [same, other]
