// The host's end of a stream, a transfer at a time.
#ifndef poplar_StreamCallback_hpp
#define poplar_StreamCallback_hpp

#pragma GCC visibility push(default)

namespace poplar {

class StreamCallback {
 public:
  enum class Result { Success, NotAvailable };
  virtual ~StreamCallback();
  // Early, where it can be; NotAvailable: fetch is called instead.
  virtual Result prefetch(void* buffer) = 0;
  virtual void fetch(void* buffer) = 0;  // of a stream to the host: `buffer` has the data
  virtual void complete() = 0;           // the data has been used
  virtual void invalidatePrefetched() {}
};

}  // namespace poplar

#pragma GCC visibility pop

#endif
