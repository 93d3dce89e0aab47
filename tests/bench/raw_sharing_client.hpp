// The same as RawClient in threads that share their rounds: the commands of all threads that arrive during a
// round go in the next one, in one write to each node. It shows how much sharing can gain. It has none of the
// guarantees of redlock. For example, one frozen node stops all threads.
#pragma once

#include "client.hpp"
#include "raw_nodes.hpp"

#include <cstddef>
#include <memory>
#include <mutex>
#include <semaphore>
#include <string>
#include <utility>
#include <vector>

namespace redlock::bench {

/// Rounds that several threads share. One of the threads, the leader, sends the commands of all.
class RawSharedRounds {
public:
    explicit RawSharedRounds(const std::vector<std::string>& uris) : nodes_(uris) {}

    std::size_t quorum() const noexcept { return nodes_.quorum(); }

    /// Sends the command in a round and blocks until the round has ended.
    void send(RawCommand& command) {
        Request request{&command};
        std::unique_lock lock{mutex_};
        waiting_.push_back(&request);
        if (has_leader_) {
            lock.unlock();
            request.is_due.acquire();
            if (request.is_done) return;
            lock.lock();  // this thread is the leader now
        }
        has_leader_ = true;
        auto round = std::exchange(waiting_, {});
        lock.unlock();
        commands_.clear();
        for (auto* const one : round) commands_.push_back(one->command);
        nodes_.send_to_all(commands_);
        lock.lock();
        has_leader_ = !waiting_.empty();
        auto* const successor = has_leader_ ? waiting_.front() : nullptr;
        lock.unlock();
        if (successor != nullptr) successor->is_due.release();
        for (auto* const one : round) {
            if (one == &request) continue;
            one->is_done = true;
            one->is_due.release();
        }
    }

private:
    struct Request {
        RawCommand* command;
        bool is_done = false;
        std::binary_semaphore is_due{0};  ///< the command has been sent, or this thread is the leader
    };

    RawNodes nodes_;  // only the leader uses it
    std::vector<RawCommand*> commands_{};
    std::mutex mutex_{};
    bool has_leader_ = false;
    std::vector<Request*> waiting_{};
};

class RawSharingClient final : public LocalClient {
public:
    RawSharingClient(std::shared_ptr<RawSharedRounds> rounds, const std::string& resource)
        : LocalClient("raw, sharing"),
          rounds_(std::move(rounds)),
          owner_(any_owner()),
          set_(RawCommand::set(resource, owner_)),
          release_(RawCommand::compare_and_delete(resource, owner_)) {}

    bool acquire() override {
        rounds_->send(set_);
        return set_.granted >= rounds_->quorum();
    }
    void release() override { rounds_->send(release_); }

private:
    std::shared_ptr<RawSharedRounds> rounds_;
    std::string owner_;
    RawCommand set_;
    RawCommand release_;
};

}  // namespace redlock::bench
