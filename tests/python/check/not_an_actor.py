"""A module without actors is a module with helpers."""

TABLE = {"a": 1.5}


class Point:
    def __init__(self, x, y):
        self.x = x
        self.y = y

    def move(self, by):
        self.x += by / 2
        return self


def _scale(point):
    return point.move(0.5)
