"""The module `pvm_host`, which the SDK imports: the functions of the host.

Every name exists from the start, if only as a refusal: where one is missing the SDK silently
takes another way. Arguments are checked here, because the component's imports trap on values of
the wrong type; the host checks them again. What this module raises and how it says so decides
results and fuel, so a change of it is a new machine.
"""

import wit_world as _wit
from componentize_py_types import Err as _Err

_NAMES = {
    1: "out_of_gas",
    2: "invalid_input",
    3: "not_found",
    4: "storage_error",
    5: "forbidden",
    6: "internal",
    7: "missing_entitlement",
    8: "quota",
}
_INVALID_INPUT = 2
_FORBIDDEN = 5

_RESERVED = frozenset({b"__INITIALIZED__"})
# A slot of the SDK that no host function writes on this devnet.
_CLOSED = _RESERVED | {b"cowboy.offchain.image.v1"}

_MAX_BYTES = 1 << 20
_MAX_SCAN = 1000
_U64 = (1 << 64) - 1
_U128 = (1 << 128) - 1


class HostError(RuntimeError):
    """A host function's refusal."""

    def __init__(self, message="", code=None, name=None):
        super().__init__(message)
        self.code = code
        self.name = name


def _refuse(code, message):
    return HostError(message, code, _NAMES[code])


class _State:
    """Whether the module is still being loaded, and the answer of `context`."""

    __slots__ = ("loading", "context")


_state = _State()
_state.loading = True
_state.context = None


def _ask(function, *arguments):
    """Calls an import of the component."""
    if _state.loading:
        raise _refuse(_FORBIDDEN, "the host cannot be asked while the module is loaded")
    try:
        return function(*arguments)
    except _Err as error:
        refusal = error.value
    # Outside the handler, so that no other exception is chained to it.
    raise _refuse(refusal.code, refusal.message)


def _bytes(name, value):
    if type(value) is not bytes:
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise TypeError(f"{name} must be bytes, not {type(value).__name__}")
        value = memoryview(value).tobytes()
    if len(value) > _MAX_BYTES:
        raise _refuse(_INVALID_INPUT, f"{name} has {len(value)} bytes, at most {_MAX_BYTES}")
    return value


def _text_or_bytes(name, value):
    return _bytes(name, str.encode(value, "utf-8") if isinstance(value, str) else value)


def _sized(name, value, size):
    value = _bytes(name, value)
    if len(value) != size:
        raise _refuse(_INVALID_INPUT, f"{name} has {len(value)} bytes, {size} are expected")
    return value


def _address(name, value):
    return _sized(name, value, 20)


def _id(name, value):
    return _sized(name, value, 32)


def _text(name, value):
    if not isinstance(value, str):
        raise TypeError(f"{name} must be str, not {type(value).__name__}")
    value = str.__str__(value)
    _bytes(name, value.encode("utf-8"))
    return value


def _number(name, value, most=_U64):
    if not isinstance(value, int):
        raise TypeError(f"{name} must be int, not {type(value).__name__}")
    value = int.__index__(value) + 0
    if not 0 <= value <= most:
        raise _refuse(_INVALID_INPUT, f"{name} must be from 0 to {most}")
    return value


def _amount(name, value):
    value = _number(name, value, _U128)
    return _wit.Amount(value >> 64, value & _U64)


def _integer(amount):
    return None if amount is None else amount.high << 64 | amount.low


# The call and the chain.


def context():
    answer = _state.context
    if answer is None:
        answer = _state.context = _ask(_wit.context)
    return {
        "tx_hash": answer.tx_hash,
        "sender": answer.sender,
        "actor_addr": answer.actor,
        "block_height": answer.height,
        "timestamp_ms": answer.timestamp_ms,
        "chain_id": answer.chain_id,
        "chain_instance_id": answer.chain_instance_id,
    }


def current_block():
    return context()["block_height"]


def self_address():
    return context()["actor_addr"]


def actor_owner():
    return _ask(_wit.actor_owner)


def runtime_config():
    # A constant, because the SDK asks for it while it is imported.
    return {"continuation_mode": "fsm"}


def charge_gas(amount):
    _ask(_wit.charge_gas, _number("amount", amount))


# The store.


def get_state(key):
    return _ask(_wit.get_state, _text_or_bytes("key", key))


def set_state(key, value):
    key = _text_or_bytes("key", key)
    if key in _CLOSED:
        raise ValueError(f"set_state: key {key!r} is reserved by the cowboy_sdk")
    _ask(_wit.set_state, key, _bytes("value", value))


def delete_state(key):
    key = _text_or_bytes("key", key)
    if key in _CLOSED:
        raise ValueError(f"delete_state: key {key!r} is reserved by the cowboy_sdk")
    _ask(_wit.delete_state, key)


def set_reserved_state(key, value):
    key = _text_or_bytes("key", key)
    if key not in _RESERVED:
        raise ValueError(f"set_reserved_state: key {key!r} is not reserved")
    _ask(_wit.set_reserved_state, key, _bytes("value", value))


def scan_state_prefix(prefix, limit=100):
    limit = min(_number("limit", limit), _MAX_SCAN)
    entries = _ask(_wit.scan_state_prefix, _text_or_bytes("prefix", prefix), limit)
    return [(entry.key, entry.value) for entry in entries]


# Cryptography.


def keccak256(data):
    data = _bytes("data", data)
    # A module's constants may be addresses with checksums, so this one works while it is loaded.
    return _keccak256(data) if _state.loading else _ask(_wit.keccak256, data)


def randomness(domain):
    return _ask(_wit.randomness, _text_or_bytes("domain", domain))


def verify_signature(algorithm, public_key, message, signature):
    return _ask(
        _wit.verify_signature,
        _number("algorithm", algorithm),
        _bytes("public_key", public_key),
        _bytes("message", message),
        _bytes("signature", signature),
    )


# Messages, events, money.


def send_message(target, payload):
    _ask(_wit.send_message, _address("target", target), _bytes("payload", payload))


def emit_event(name, data, schema=None):
    schema = None if schema is None else _id("schema", schema)
    number = _ask(_wit.emit_event, _text("name", name), _bytes("data", data), schema)
    return {"emit_id": number, "sync_outcomes": [], "deferred_subs": []}


def transfer_balance(to, amount):
    _ask(_wit.transfer_balance, _address("to", to), _amount("amount", amount))


def call_actor(target, method, payload, cycles_limit, access_limit=0):
    return _ask(
        _wit.call_actor,
        _address("target", target),
        _text("method", method),
        _bytes("payload", payload),
        _number("cycles_limit", cycles_limit),
        _number("access_limit", access_limit),
    )


# Timers.


def schedule_timer(height, payload):
    return schedule_timer_ex(height, payload)


def schedule_timer_ex(height, payload, fee_payer=b"", gas_limit=0, access_limit=0, expires_at=0):
    """Empty bytes and 0 are the defaults."""
    fee_payer = _bytes("fee_payer", fee_payer)
    return _ask(
        _wit.schedule_timer,
        _number("height", height),
        _bytes("payload", payload),
        _address("fee_payer", fee_payer) if fee_payer else None,
        _number("gas_limit", gas_limit) or None,
        _number("access_limit", access_limit) or None,
        _number("expires_at", expires_at) or None,
    )


def cancel_timer(timer_id):
    _ask(_wit.cancel_timer, _id("timer_id", timer_id))


def extend_timer(timer_id, new_expires_at):
    _ask(_wit.extend_timer, _id("timer_id", timer_id), _number("new_expires_at", new_expires_at))


# Tokens.


def token_create(
    name, symbol, decimals, initial_supply, max_supply=None, transfer_hook=None, metadata_uri=None
):
    return _ask(
        _wit.token_create,
        _text_or_bytes("name", name),
        _text_or_bytes("symbol", symbol),
        _number("decimals", decimals),
        _amount("initial_supply", initial_supply),
        None if max_supply is None else _amount("max_supply", max_supply),
        None if transfer_hook is None else _address("transfer_hook", transfer_hook),
        None if metadata_uri is None else _text_or_bytes("metadata_uri", metadata_uri),
    )


def token_transfer(token_id, to, amount):
    _ask(_wit.token_transfer, _id("token_id", token_id), _address("to", to),
         _amount("amount", amount))


def token_transfer_from(token_id, from_addr, to, amount):
    _ask(_wit.token_transfer_from, _id("token_id", token_id), _address("from_addr", from_addr),
         _address("to", to), _amount("amount", amount))


def token_approve(token_id, spender, amount):
    _ask(_wit.token_approve, _id("token_id", token_id), _address("spender", spender),
         _amount("amount", amount))


def token_mint(token_id, to, amount):
    _ask(_wit.token_mint, _id("token_id", token_id), _address("to", to),
         _amount("amount", amount))


def token_burn(token_id, amount):
    _ask(_wit.token_burn, _id("token_id", token_id), _amount("amount", amount))


def token_balance_of(token_id, owner):
    answer = _ask(_wit.token_balance_of, _id("token_id", token_id), _address("owner", owner))
    return _integer(answer)


def token_total_supply(token_id):
    return _integer(_ask(_wit.token_total_supply, _id("token_id", token_id)))


def token_allowance(token_id, owner, spender):
    answer = _ask(_wit.token_allowance, _id("token_id", token_id), _address("owner", owner),
                  _address("spender", spender))
    return _integer(answer)


# What is not on this devnet.


def _absent(name, subject):
    def refuse(*arguments, **named):
        raise _refuse(_INVALID_INPUT, f"{name}: this devnet has no {subject}")

    refuse.__name__ = refuse.__qualname__ = name
    return refuse


for _subject, _functions in {
    "forks of actors": ["fork_actor"],
    "upgrades of actors": ["upgrade_self"],
    "event subscriptions": [
        "subscribe_event",
        "unsubscribe_event",
        "force_unsubscribe_event",
        "update_bid",
        "topup_subscription",
    ],
    "jobs by raw payload; use cowboy_sdk.runner": ["submit_job"],
    "intents": ["intent_deposit", "intent_withdraw", "intent_broadcast", "intent_broadcast_ex"],
    "off-chain images": ["offchain_image_initialize", "offchain_image_update"],
    "way to delete reserved keys": ["delete_reserved_state"],
}.items():
    for _function in _functions:
        globals()[_function] = _absent(_function, _subject)

# Last, because the SDK uses this module while it is imported.
from cowboy_sdk._keccak import keccak256 as _keccak256
