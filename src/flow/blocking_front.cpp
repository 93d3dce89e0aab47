// The blocking front: it does what a flow waits for in the calling thread.
#include "flow.hpp"

namespace redlock::flow {
namespace {

struct Blocking {
    Nodes& nodes;

    void operator()(std::monostate) const noexcept {}
    void operator()(const AwaitedRound& round) const {
        nodes.ask({round.request, 1}, *round.limits, {round.tally, 1});
    }
    void operator()(const AwaitedPause& pause) const { pause.clock->sleep_until(pause.until, *pause.stop); }
    void operator()(const AwaitedTurn& it) const noexcept { it.turn->has_come = true; }
    void operator()(const AwaitedListen& it) const { *it.listens = it.waiter->listen(it.homes, *it.limits); }
    void operator()(const AwaitedMessage& it) const { *it.message = it.waiter->sleep(it.until, *it.stop); }
};

}  // namespace

std::exception_ptr do_awaited(const Operation& operation) noexcept {
    try {
        std::visit(Blocking{operation.nodes()}, operation.awaited());
    } catch (...) {  // no memory, or a Nodes of the user that throws
        return std::current_exception();
    }
    return {};
}

std::error_code run_blocking(Operation& operation, const Flow& flow) {
    for (operation.start(flow); !operation.ended();) operation.resume(do_awaited(operation));
    return flow.result();
}

}  // namespace redlock::flow
