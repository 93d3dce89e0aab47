// The blocking front: it does what a flow waits for in the calling thread.
#include "flow/flow.hpp"

namespace redlock::flow {
namespace {

struct Blocking {
    Nodes& nodes;

    void operator()(std::monostate) const noexcept {}
    void operator()(const PendingRound& round) const {
        nodes.ask({round.request, 1}, *round.limits, {round.tally, 1});
    }
    void operator()(const PendingPause& pause) const { pause.clock->sleep_until(pause.until, *pause.stop); }
    void operator()(const PendingListen& it) const { *it.listens = it.waiter->listen(it.homes, *it.limits); }
    void operator()(const PendingMessage& it) const { *it.message = it.waiter->sleep(it.until, *it.stop); }
};

}  // namespace

std::error_code run_blocking(Operation& operation, const Flow& flow) {
    const Blocking blocking{operation.nodes()};
    for (operation.start(flow); !operation.ended();) {
        std::exception_ptr failure;
        try {
            std::visit(blocking, operation.pending());
        } catch (...) {  // no memory, or a Nodes of the user that throws
            failure = std::current_exception();
        }
        operation.resume(std::move(failure));
    }
    return flow.result();
}

}  // namespace redlock::flow
