"""InitProducerId (22), versions 0 to 5: an id for an idempotent producer.

Versions: 3 lets a producer ask for the next epoch of its id (KIP-360), which only transactional ones need;
5 stands for transactions of KIP-890.
Behaviour: every request gets a new id with epoch 0. Transactional ids are refused, with an error that no
client retries. Access: IDEMPOTENT_WRITE on the cluster, or WRITE on any topic.
"""

from __future__ import annotations

from kclient.broker.apis.call import ApiCall, error_in
from kclient.errors import Errors
from kclient.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


def init_producer_id(call: ApiCall, request: InitProducerIdRequest) -> InitProducerIdResponse:
    """Give out an id."""
    response = InitProducerIdResponse(producer_epoch=-1)
    if request.transactional_id is not None:
        refusal = Errors.INVALID_REQUEST if not request.transactional_id else Errors.UNSUPPORTED_VERSION
        response.error_code = int(refusal)
        return response
    with error_in(response):
        response.producer_id = call.broker.producer_ids.next()
        response.producer_epoch = 0
    return response
