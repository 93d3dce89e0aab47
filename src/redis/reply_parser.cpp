// The only file that includes hiredis, of which it uses only the reader. Sockets are created, written and
// read elsewhere, because hiredis up to 1.x raises SIGPIPE, leaves descriptors open across exec(), and
// resolves names without a time limit.
#include "redis/reply_parser.hpp"

#include <hiredis/hiredis.h>

#include <new>
#include <string>

namespace redlock {
namespace {

using detail::Reply;

// ---- Callbacks. hiredis parses into the one Reply of the connection and allocates no objects.

Reply* target(const redisReadTask* task) {
    return static_cast<Reply*>(task->privdata);
}

void* parse_string(const redisReadTask* task, char* text, size_t length) {
    auto* const reply = target(task);
    reply->text.assign(text, length);
    reply->kind = task->type == REDIS_REPLY_STATUS  ? Reply::Kind::status
                  : task->type == REDIS_REPLY_ERROR ? Reply::Kind::error
                                                    : Reply::Kind::text;
    return reply;
}

void* parse_integer(const redisReadTask* task, long long value) {
    auto* const reply = target(task);
    reply->kind = Reply::Kind::integer;
    reply->text.clear();
    reply->integer = value;
    return reply;
}

void* parse_nil(const redisReadTask* task) {
    auto* const reply = target(task);
    reply->kind = Reply::Kind::nil;
    reply->text.clear();
    return reply;
}

/// Rejects every array, because no command of a lock is answered by one. A server could otherwise announce a
/// billion elements.
template <class Count>
void* refuse_array(const redisReadTask*, Count) {
    return nullptr;
}

void keep_object(void*) {}

redisReplyObjectFunctions* parser() {
    static redisReplyObjectFunctions functions = [] {
        redisReplyObjectFunctions f{};
        f.createString = parse_string;
        f.createArray = refuse_array;
        f.createInteger = parse_integer;
        f.createNil = parse_nil;
        f.freeObject = keep_object;
        return f;
    }();
    return &functions;
}

// ---- Callbacks for operators' commands, the query of Sentinels and SUBSCRIBE. Their reply may be a short
// flat list.

constexpr std::size_t max_elements = 16;

/// Appends one element. Sets the kind each time, because next() clears it, and there may be several calls of
/// next() between the elements.
void* add_element(const redisReadTask* task, std::string_view element) {
    auto* const reply = target(task);
    reply->kind = Reply::Kind::list;
    if (task->idx > 0) reply->text += '\n';
    reply->text.append(element);
    return reply;
}

void* parse_string_or_element(const redisReadTask* task, char* text, size_t length) {
    return task->parent ? add_element(task, {text, length}) : parse_string(task, text, length);
}

void* parse_integer_or_element(const redisReadTask* task, long long value) {
    return task->parent ? add_element(task, std::to_string(value)) : parse_integer(task, value);
}

void* parse_nil_or_element(const redisReadTask* task) {
    return task->parent ? add_element(task, {}) : parse_nil(task);
}

template <class Count>
void* begin_list(const redisReadTask* task, Count count) {
    if (task->parent || static_cast<std::size_t>(count) > max_elements) return nullptr;
    auto* const reply = target(task);
    reply->kind = Reply::Kind::list;
    reply->text.clear();
    return reply;
}

redisReplyObjectFunctions* parser_of_lists() {
    static redisReplyObjectFunctions functions = [] {
        auto f = *parser();
        f.createString = parse_string_or_element;
        f.createArray = begin_list;
        f.createInteger = parse_integer_or_element;
        f.createNil = parse_nil_or_element;
        return f;
    }();
    return &functions;
}

}  // namespace

void ReplyParser::FreeReader::operator()(redisReader* reader) const noexcept {
    redisReaderFree(reader);
}

ReplyParser::ReplyParser(Reply& reply) : reader_(redisReaderCreate()), reply_(reply) {
    if (!reader_) throw std::bad_alloc{};
    reader_->fn = parser();
    reader_->privdata = &reply_;
}

void ReplyParser::admit_lists() noexcept {
    reader_->fn = parser_of_lists();
}

bool ReplyParser::feed(std::string_view bytes) {
    return redisReaderFeed(reader_.get(), bytes.data(), bytes.size()) == REDIS_OK;
}

ReplyParser::Progress ReplyParser::next() {
    reply_.kind = Reply::Kind::none;
    void* parsed = nullptr;
    if (redisReaderGetReply(reader_.get(), &parsed) != REDIS_OK) return Progress::protocol_error;
    return parsed != nullptr ? Progress::complete : Progress::incomplete;
}

std::size_t ReplyParser::unparsed() const noexcept {
    return reader_->len - reader_->pos;
}

}  // namespace redlock
