"""An Ethereum node for development: a real EVM (py-evm, through eth-tester) behind the part of
JSON-RPC that `eth_send` jobs use.

Each transaction is mined at once, in its own block; `evm_mine` makes empty blocks. The ten
accounts that `eth_accounts` lists have the secret keys 1 to 10 and a million ether each. State is
in memory and lost at exit.
"""

import argparse
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock

from eth_bloom import BloomFilter
from eth_tester import EthereumTester, PyEVMBackend
from eth_tester.exceptions import TransactionNotFound
from eth_utils import to_bytes

CHAIN_ID = 131277322940537
MAX_REQUEST = 1024 * 1024


def quantity(number):
    return hex(number)


def receipt(found):
    """Converts eth-tester's receipt to the form of the execution API."""
    place = {
        "transactionHash": found["transaction_hash"],
        "transactionIndex": quantity(found["transaction_index"]),
        "blockHash": found["block_hash"],
        "blockNumber": quantity(found["block_number"]),
    }
    logs = [
        {
            "address": log["address"].lower(),
            "topics": list(log["topics"]),
            "data": log["data"],
            "logIndex": quantity(log["log_index"]),
            "removed": False,
            **place,
        }
        for log in found["logs"]
    ]
    bloom = BloomFilter()
    for log in logs:
        bloom.extend(map(to_bytes_of_hex, [log["address"], *log["topics"]]))
    return {
        **place,
        "type": found["type"],
        "status": quantity(found["status"]),
        "from": found["from"].lower(),
        # For a contract creation, eth-tester has an empty string.
        "to": found["to"].lower() if found["to"] else None,
        "contractAddress": found["contract_address"] and found["contract_address"].lower(),
        "gasUsed": quantity(found["gas_used"]),
        "cumulativeGasUsed": quantity(found["cumulative_gas_used"]),
        "effectiveGasPrice": quantity(found["effective_gas_price"]),
        "logsBloom": f"0x{int(bloom):0512x}",
        "logs": logs,
    }


def to_bytes_of_hex(text):
    return to_bytes(hexstr=text)


class Chain:
    def __init__(self):
        self.tester = EthereumTester(PyEVMBackend())
        # Requests come from several threads; the EVM supports only one.
        self.lock = Lock()

    def answer(self, method, params):
        tester = self.tester
        with self.lock:
            match method, params:
                case "eth_chainId", []:
                    return quantity(CHAIN_ID)
                case "eth_accounts", []:
                    return [account.lower() for account in tester.get_accounts()]
                case "eth_blockNumber", []:
                    return quantity(tester.get_block_by_number("latest")["number"])
                case "eth_getBalance", [account, _]:
                    return quantity(tester.get_balance(account))
                case "eth_getTransactionCount", [account, _]:
                    return quantity(tester.get_nonce(account))
                case "eth_sendRawTransaction", [raw]:
                    return tester.send_raw_transaction(raw)
                case "eth_getTransactionByHash", [known]:
                    try:
                        return {"hash": tester.get_transaction_by_hash(known)["hash"]}
                    except TransactionNotFound:
                        return None
                case "eth_getTransactionReceipt", [known]:
                    try:
                        return receipt(tester.get_transaction_receipt(known))
                    except TransactionNotFound:
                        return None
                case "evm_mine", []:
                    return tester.mine_blocks(1)[0]
        raise LookupError(f"no method {method} with {len(params)} parameters")


class Handler(BaseHTTPRequestHandler):
    chain: Chain
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        length = int(self.headers.get("content-length", 0))
        if length > MAX_REQUEST:
            self.close_connection = True
            self.send_error(413)
            return
        request, answer = {}, {"jsonrpc": "2.0", "id": None}
        try:
            request = json.loads(self.rfile.read(length))
            answer["id"] = request["id"]
            answer["result"] = self.chain.answer(request["method"], request.get("params", []))
        except LookupError as error:
            answer["error"] = {"code": -32601, "message": str(error)}
        except Exception as error:  # The caller gets the EVM's error.
            answer["error"] = {"code": -32000, "message": str(error)}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main():
    parser = argparse.ArgumentParser(prog="ethereum-dev", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0, the default: any that is free")
    Handler.chain = Chain()
    server = ThreadingHTTPServer(("127.0.0.1", parser.parse_args().port), Handler)
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


main()
