#include "made_up_node.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace redlock::fuzz {

MadeUpNode::~MadeUpNode() {
    hang_up();
    receive();
    hang_up();
}

void MadeUpNode::behave(Manner manner) {
    constexpr std::string_view dutiful = "pblostz";
    manner_ = manner;
    carries_out_all_ = carries_out_all_ && dutiful.find(static_cast<char>(manner)) != dutiful.npos;
}

void MadeUpNode::hang_up() {
    carries_out_all_ = false;
    for (const auto& guest : guests_) ::close(guest.socket);
    guests_.clear();
    store_.forget_scripts();
}

void MadeUpNode::do_now(Clock::time_point now) {
    if (manner_ == Manner::frozen) return;
    receive();
    for (auto& guest : guests_) {
        hear(guest, now);
        work(guest, now);
        speak(guest, now);
        if (guest.gone) ::close(guest.socket);
    }
    std::erase_if(guests_, [](const Guest& guest) { return guest.gone; });
}

Clock::time_point MadeUpNode::next() const {
    auto next = Clock::never();
    if (manner_ == Manner::frozen) return next;
    for (const auto& guest : guests_) {
        if (!guest.tasks.empty()) next = std::min(next, guest.tasks.front().due);
        if (!guest.speeches.empty()) next = std::min(next, guest.speeches.front().due);
    }
    return next;
}

void MadeUpNode::receive() {
    for (int socket = listener_.accept(); socket >= 0; socket = listener_.accept())
        guests_.push_back({.socket = socket});
    if (manner_ == Manner::away)
        for (auto& guest : guests_) guest.gone = true;
}

// ---- Hearing

/// What a client has sent before it hung up is carried out, too.
void MadeUpNode::hear(Guest& guest, Clock::time_point now) {
    std::array<char, 16'384> bytes;
    auto length = ::read(guest.socket, bytes.data(), bytes.size());
    for (; length > 0; length = ::read(guest.socket, bytes.data(), bytes.size()))
        guest.heard.append(bytes.data(), static_cast<std::size_t>(length));
    while (auto words = command_in(guest.heard)) accept_task(guest, std::move(*words), now);
    if (length == 0 && guest.tasks.empty()) guest.gone = true;
}

/// Takes a whole command off what was heard.
std::optional<Words> MadeUpNode::command_in(std::string& heard) {
    std::size_t at = 0;
    const auto number = [&](char kind) -> std::optional<std::size_t> {
        const auto end = heard.find("\r\n", at);
        if (end == std::string::npos) return std::nullopt;
        claim(heard[at] == kind, "commands are arrays of strings");
        const auto value = std::stoul(heard.substr(at + 1, end - at - 1));
        at = end + 2;
        return value;
    };
    const auto count = number('*');
    if (!count) return std::nullopt;
    Words words;
    while (words.size() < *count) {
        const auto length = number('$');
        if (!length || heard.size() < at + *length + 2) return std::nullopt;
        words.push_back(heard.substr(at, *length));
        at += *length + 2;
    }
    heard.erase(0, at);
    return words;
}

void MadeUpNode::accept_task(Guest& guest, Words words, Clock::time_point now) {
    auto due = manner_ == Manner::behind ? now + 3 * budget_ : now;
    if (!guest.tasks.empty()) due = std::max(due, guest.tasks.back().due);
    guest.tasks.push_back({due, std::move(words), manner_});
}

// ---- Doing

void MadeUpNode::work(Guest& guest, Clock::time_point now) {
    while (!guest.gone && !guest.tasks.empty() && guest.tasks.front().due <= now) {
        const auto task = std::move(guest.tasks.front());
        guest.tasks.pop_front();
        do_task(guest, task, now);
    }
}

void MadeUpNode::do_task(Guest& guest, const Task& task, Clock::time_point now) {
    if (task.manner == Manner::dropping) {
        guest.gone = true;
        return;
    }
    if (task.manner == Manner::forgetful) store_.forget_scripts();
    const auto answer = answer_to(task, now);
    guest.done.push_back({Store::asked_in(task.words), answer.granted});
    match(guest);
    prepare(guest, task, answer.words, now);
}

Answer MadeUpNode::answer_to(const Task& task, Clock::time_point now) {
    switch (task.manner) {
        case Manner::wrong_type:
            return {"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"};
        case Manner::loading: return {"-LOADING Redis is loading the dataset in memory\r\n"};
        case Manner::text: return {"$2\r\nOK\r\n"};
        case Manner::echoing: break;
        default: return store_.carry_out(task.words, now);
    }
    std::string echo = "-ERR unknown command, with args beginning with:";
    for (const auto& word : task.words) echo += " '" + word + "'";
    return {echo + "\r\n"};
}

// ---- Speaking

void MadeUpNode::prepare(Guest& guest, const Task& task, const std::string& reply, Clock::time_point now) {
    auto due = now;
    if (!guest.speeches.empty()) due = std::max(due, guest.speeches.back().due);
    const auto say = [&](std::string_view words, bool last = false) {
        guest.speeches.push_back({due, std::string{words}, last});
    };
    switch (task.manner) {
        case Manner::silent: return;
        case Manner::nonsense: return say(nonsense_);
        case Manner::twice: return say(reply + reply);
        case Manner::closing: return say({}, true);
        case Manner::halving: return say(std::string_view{reply}.substr(0, reply.size() / 2), true);
        case Manner::slow: due += budget_ / 2; return say(reply);
        case Manner::late: due += 3 * budget_; return say(reply);
        case Manner::trickling:
            for (const auto& byte : reply) {
                due += budget_ / 8;
                say({&byte, 1});
            }
            return;
        default: return say(reply);
    }
}

void MadeUpNode::speak(Guest& guest, Clock::time_point now) {
    while (!guest.gone && !guest.speeches.empty() && guest.speeches.front().due <= now) {
        const auto speech = std::move(guest.speeches.front());
        guest.speeches.pop_front();
        const auto sent = ::send(guest.socket, speech.words.data(), speech.words.size(), MSG_NOSIGNAL);
        if (sent > 0)
            guest.said.take(std::string_view{speech.words}.substr(0, static_cast<std::size_t>(sent)));
        match(guest);
        guest.gone = speech.last;
    }
}

/// Replies belong to the commands in their order, whoever meant them for what.
void MadeUpNode::match(Guest& guest) {
    while (guest.matched) {
        Said said;
        const auto reading = guest.said.next(said);
        if (reading == Reading::incomplete) break;
        if (reading == Reading::reply)
            guest.replies.push_back(said);
        else
            guest.matched = false;
        lied_ = lied_ || reading == Reading::doubtful;
    }
    for (; !guest.replies.empty() && !guest.done.empty(); guest.replies.pop_front(), guest.done.pop_front())
        match(guest.replies.front(), guest.done.front());
}

void MadeUpNode::match(const Said& said, const Done& done) {
    const bool counted =
        done.asked.script == &wire::set_and_count && said.kind == Said::Kind::integer && said.integer > 0;
    const bool told = done.asked.script ? counted || said.is_integer(1) : said.is_status("OK");
    if (done.asked.acquires && told) granted_.insert(done.asked.owner);
    const bool matters = done.asked.acquires || done.asked.extends || done.asked.script == &wire::raise_count;
    lied_ = lied_ || (matters && told && !done.granted);
    // A count that is not the node's own may be smaller than one it has given before.
    lied_ = lied_ || (counted && nonsense_.find(':') != std::string::npos);
}

}  // namespace redlock::fuzz
