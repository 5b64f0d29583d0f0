# Raises an exception whose text looks like markup and formats.
# expect: ValueError: <script>
def attack(payload):
    raise ValueError("<script>alert(1)</script> {0} %s ${HOME} `id` '; DROP TABLE blocks; --")
