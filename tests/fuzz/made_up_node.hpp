// A node that keeps its keys as a Redis does, and answers as it is told to. It knows what it has carried out
// and what it has said, so a target can tell whether a lock was granted, and whether anybody was lied to.
#pragma once

#include "listener.hpp"
#include "reply_reader.hpp"
#include "store.hpp"

#include <redlock/clock.hpp>

#include <cstddef>
#include <deque>
#include <list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::fuzz {

/// How a node deals with a command when it comes.
enum class Manner : char {
    proper = 'p',
    slow = 'b',        ///< answers in half a budget
    late = 'l',        ///< carries it out at once, answers after three budgets
    behind = 'o',      ///< carries it out after three budgets, then answers
    silent = 's',      ///< carries it out, never answers
    trickling = 't',   ///< answers byte by byte, an eighth of a budget each
    nonsense = 'n',    ///< carries it out, answers the nonsense of the day
    twice = 'e',       ///< answers it twice
    closing = 'c',     ///< carries it out and hangs up
    halving = 'x',     ///< says half an answer and hangs up
    dropping = 'r',    ///< hangs up and does nothing
    wrong_type = 'w',  ///< does nothing, answers WRONGTYPE
    loading = 'y',     ///< does nothing, answers LOADING
    echoing = 'g',     ///< does nothing, answers an error with all that it was sent
    text = 'i',        ///< does nothing, answers a string in place of a status
    forgetful = 'u',   ///< forgets its scripts before each command
    away = 'a',        ///< hangs up on everybody who comes
    frozen = 'z',      ///< does nothing until it is given other manners, then all that has come in
};

class MadeUpNode {
public:
    MadeUpNode(const Listener& listener, Clock::duration budget) : listener_(listener), budget_(budget) {}
    ~MadeUpNode();
    MadeUpNode(const MadeUpNode&) = delete;
    MadeUpNode& operator=(const MadeUpNode&) = delete;

    void behave(Manner manner);
    void speak_nonsense(std::string_view words) { nonsense_ = words; }
    /// Hangs up on everybody, and has forgotten its scripts.
    void hang_up();

    void do_now(Clock::time_point now);
    Clock::time_point next() const;

    /// Whether it has told a client of a grant to `owner`, in the place of the answer to its acquiring.
    bool has_granted(std::string_view owner) const { return granted_.contains(owner); }
    /// Whether it has told anybody of a grant that was none.
    bool has_lied() const { return lied_; }
    /// Whether all that was sent to it is carried out sooner or later, in the order of each connection.
    bool carries_out_all() const { return carries_out_all_; }
    const Store& store() const { return store_; }

private:
    /// A command on its way through the node.
    struct Task {
        Clock::time_point due;
        Words words;
        Manner manner;
    };
    struct Speech {
        Clock::time_point due;
        std::string words;
        bool last = false;  // it hangs up after this
    };
    /// A command that was carried out, or not.
    struct Done {
        Asked asked;
        bool granted;
    };
    /// The node's end of one connection.
    struct Guest {
        int socket;
        std::string heard{};
        std::deque<Task> tasks{};
        std::deque<Speech> speeches{};
        ReplyReader said{};
        bool matched = true;         // replies can still be told apart
        std::deque<Said> replies{};  // to none of the commands done so far
        std::deque<Done> done{};     // without a reply so far
        bool gone = false;
    };

    void receive();
    void hear(Guest& guest, Clock::time_point now);
    static std::optional<Words> command_in(std::string& heard);
    void accept_task(Guest& guest, Words words, Clock::time_point now);
    void work(Guest& guest, Clock::time_point now);
    void do_task(Guest& guest, const Task& task, Clock::time_point now);
    Answer answer_to(const Task& task, Clock::time_point now);
    void prepare(Guest& guest, const Task& task, const std::string& reply, Clock::time_point now);
    void speak(Guest& guest, Clock::time_point now);
    void match(Guest& guest);
    void match(const Said& said, const Done& done);

    const Listener& listener_;
    Clock::duration budget_;
    Manner manner_ = Manner::proper;
    std::string nonsense_ = "HTTP/1.1 400 Bad Request\r\n\r\n";
    Store store_{};
    std::list<Guest> guests_{};
    std::set<std::string, std::less<>> granted_{};
    bool lied_ = false;
    bool carries_out_all_ = true;
};

}  // namespace redlock::fuzz
