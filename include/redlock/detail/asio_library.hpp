// Includes the Asio that asio.hpp takes, Boost.Asio or standalone Asio, and names its namespace `net`.
#pragma once

#if defined(REDLOCK_ASIO_STANDALONE) && defined(REDLOCK_ASIO_BOOST)
#error "redlock: define REDLOCK_ASIO_STANDALONE or REDLOCK_ASIO_BOOST, not both"
#elif !defined(REDLOCK_ASIO_STANDALONE) && !defined(REDLOCK_ASIO_BOOST)
#if __has_include(<boost/asio/version.hpp>)
#define REDLOCK_ASIO_BOOST
#elif __has_include(<asio/version.hpp>)
#define REDLOCK_ASIO_STANDALONE
#else
#error "redlock/asio.hpp needs Boost.Asio 1.81 or Asio 1.22; on Debian 12: libboost1.81-dev or libasio-dev"
#endif
#endif

#if defined(REDLOCK_ASIO_BOOST)
#include <boost/asio/version.hpp>
#if BOOST_ASIO_VERSION < 102600
#error "redlock/asio.hpp needs Boost.Asio 1.81 or later; on Debian 12, install libboost1.81-dev"
#endif
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/strand.hpp>
#define REDLOCK_ASIO_NAMESPACE boost_asio
#elif defined(REDLOCK_ASIO_STANDALONE)
#include <asio/version.hpp>
#if ASIO_VERSION < 102200
#error "redlock/asio.hpp needs Asio 1.22 or later; on Debian 12, install libasio-dev"
#endif
#include <asio/any_io_executor.hpp>
#include <asio/associated_allocator.hpp>
#include <asio/associated_cancellation_slot.hpp>
#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/bind_executor.hpp>
#include <asio/cancellation_type.hpp>
#include <asio/execution_context.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/query.hpp>
#include <asio/strand.hpp>
#define REDLOCK_ASIO_NAMESPACE standalone_asio
#endif

#include <system_error>

namespace redlock::asio {
inline namespace REDLOCK_ASIO_NAMESPACE {

#if defined(REDLOCK_ASIO_BOOST)
namespace net = ::boost::asio;
using ErrorCode = ::boost::system::error_code;
#else
namespace net = ::asio;
using ErrorCode = std::error_code;
#endif

}  // namespace REDLOCK_ASIO_NAMESPACE
}  // namespace redlock::asio
