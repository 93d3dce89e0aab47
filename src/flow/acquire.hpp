// One acquire() with all its attempts, as a flow.
#pragma once

#include <redlock/algorithm/acquire.hpp>

#include "place_in_queue.hpp"
#include "retries.hpp"

#include <optional>

namespace redlock::flow {

/// Acquires the resources of one request. While another client holds the resource, a fair request waits in
/// the queue (waiting.hpp). A request for several resources does not queue, because it would keep the others
/// from clients that could have them.
class Acquire final : public Retries {
public:
    Acquire(Operation& operation, Clock& clock, Entropy& entropy, const algorithm::LeaseRequest& request,
            const Retry& retry, const algorithm::AcquireLimits& limits);

    Flow run();

    /// Returns the result of run(), with what the queue has reported.
    Result take_result() noexcept;
    /// See Retries. The commands release the attempt and leave the queue.
    template <class Send>
    void for_each_unreleased(Send send) {
        Retries::for_each_unreleased(send);
        if (place_) place_->for_each_unreleased(send);
    }

private:
    Flow run_with_place();
    Flow attempt(const RoundLimits& limits) override;
    void attempted(std::error_code error) override;
    Flow wait_while_held() override;
    Flow wait_in_queue();

    const algorithm::LeaseRequest& request_;
    std::optional<PlaceInQueue> place_{};
    Clock::time_point began_{};  // when the present attempt began
};

}  // namespace redlock::flow
