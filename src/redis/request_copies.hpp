// Copies of the requests of a round and of all that they refer to. A thread whose round is made by another
// thread may return before this round is over (lane.hpp). The texts of its requests are gone then.
#pragma once

#include <redlock/detail/not_copied.hpp>
#include <redlock/nodes.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace redlock {

/// An object that is used again keeps its memory.
class RequestCopies : detail::NotCopied {
public:
    /// Returns copies of the requests, which are valid until the next call.
    std::span<const Request> copy(std::span<const Request> requests) {
        requests_.assign(requests.begin(), requests.end());
        if (texts_.size() < requests.size()) texts_.resize(requests.size());
        for (std::size_t i = 0; i < requests.size(); ++i) texts_[i].copy(requests_[i].command);
        return requests_;
    }

private:
    struct Texts {
        std::vector<std::string> resources{};
        std::array<std::string, 4> others{};
        QueueTerms queue{};

        /// Makes the command refer to copies.
        void copy(Command& command) {
            resources.assign(command.resources.begin(), command.resources.end());
            command.resources = resources;
            queue = command.queue ? *command.queue : QueueTerms{};
            if (command.queue) command.queue = &queue;
            auto kept = others.begin();
            for (auto* const text : {&command.owner, &command.description, &queue.ticket, &queue.former})
                *text = kept++->assign(*text);
        }
    };

    std::vector<Request> requests_{};
    std::vector<Texts> texts_{};
};

}  // namespace redlock
