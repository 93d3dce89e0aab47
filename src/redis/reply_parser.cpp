// The only file that includes hiredis, of which it uses only the reader (docs/protocol.md, hiredis).
#include "reply_parser.hpp"

#include <hiredis/hiredis.h>

#include <new>
#include <string>

namespace redlock {
namespace {

using detail::Reply;

constexpr std::size_t max_elements = 16;

// ---- Callbacks. hiredis parses into the one Reply of the connection and allocates no objects. Operators'
// commands, the query of Sentinels and SUBSCRIBE may be answered by a short flat list.

Reply* target(const redisReadTask* task) {
    return static_cast<Reply*>(task->privdata);
}

/// Stores a reply, or appends one element of a list. Sets the kind of the list each time, because next()
/// clears it, and there may be several calls of next() between the elements.
void* store(const redisReadTask* task, Reply::Kind kind, std::string_view text) {
    auto* const reply = target(task);
    const bool is_element = task->parent != nullptr;
    reply->kind = is_element ? Reply::Kind::list : kind;
    if (!is_element) reply->text.clear();
    if (is_element && task->idx > 0) reply->text += '\n';
    reply->text.append(text);
    return reply;
}

void* parse_string(const redisReadTask* task, char* text, size_t length) {
    const auto kind = task->type == REDIS_REPLY_STATUS  ? Reply::Kind::status
                      : task->type == REDIS_REPLY_ERROR ? Reply::Kind::error
                                                        : Reply::Kind::text;
    return store(task, kind, {text, length});
}

void* parse_integer(const redisReadTask* task, long long value) {
    target(task)->integer = value;
    return store(task, Reply::Kind::integer, task->parent ? std::to_string(value) : std::string{});
}

void* parse_nil(const redisReadTask* task) {
    return store(task, Reply::Kind::nil, {});
}

/// Rejects every array, because no command of a lock is answered by one. A server could otherwise announce a
/// billion elements.
template <class Count>
void* refuse_array(const redisReadTask*, Count) {
    return nullptr;
}

template <class Count>
void* begin_list(const redisReadTask* task, Count count) {
    const bool accepted = !task->parent && static_cast<std::size_t>(count) <= max_elements;
    return accepted ? store(task, Reply::Kind::list, {}) : nullptr;
}

void keep_object(void*) {}

constexpr redisReplyObjectFunctions functions_with(
    decltype(redisReplyObjectFunctions::createArray) create_array) {
    redisReplyObjectFunctions functions{};
    functions.createString = parse_string;
    functions.createArray = create_array;
    functions.createInteger = parse_integer;
    functions.createNil = parse_nil;
    functions.freeObject = keep_object;
    return functions;
}

constinit redisReplyObjectFunctions parser = functions_with(refuse_array);
constinit redisReplyObjectFunctions parser_of_lists = functions_with(begin_list);

}  // namespace

ReplyParser::ReplyParser(Reply& reply) : reader_(redisReaderCreate(), &redisReaderFree), reply_(reply) {
    if (!reader_) throw std::bad_alloc{};
    reader_->fn = &parser;
    reader_->privdata = &reply_;
}

void ReplyParser::admit_lists() noexcept {
    reader_->fn = &parser_of_lists;
}

bool ReplyParser::feed(std::string_view bytes) {
    return redisReaderFeed(reader_.get(), bytes.data(), bytes.size()) == REDIS_OK;
}

ReplyParser::Progress ReplyParser::next() {
    reply_.kind = Reply::Kind::none;
    void* parsed = nullptr;
    if (redisReaderGetReply(reader_.get(), &parsed) != REDIS_OK) return Progress::protocol_error;
    if (parsed == nullptr) return Progress::incomplete;
    if (reply_.kind == Reply::Kind::error) detail::remove_place_in_script(reply_.text);
    return Progress::complete;
}

std::size_t ReplyParser::unparsed() const noexcept {
    return reader_->len - reader_->pos;
}

}  // namespace redlock
