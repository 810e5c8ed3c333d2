// Calls that fail, whatever they are given. STANDIN_REFUSE="cuStreamBeginCapture=2;ncclGroupEnd=1": the second call of
// the one and the first of the other, counted over all threads; every other call goes on as before.
#pragma once

namespace standin {

// Counts a call of `function` and returns whether it is to fail.
__attribute__((visibility("default"))) bool is_refused(const char* function);

}  // namespace standin
