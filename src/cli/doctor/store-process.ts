/** Sends requests to a copy store for `inlet doctor --store`, in a process of its own: other-processes.ts starts it. */
import { type CopyStoreConfig, openCopyStore } from '#copies/open-store.ts'
import { errorMessage } from '#lib/error-message.ts'
import { serveTasks } from '#lib/serve-tasks.ts'
import { system } from '#lib/system.ts'
import type { ObjectEntry, ObjectFacts } from '#objects/object-store.ts'

export type StoreRequest =
  | { readonly call: 'get' | 'head' | 'list'; readonly key: string }
  | { readonly call: 'putIfAbsent'; readonly key: string; readonly body: Uint8Array }

export type StoreTask = { readonly config: CopyStoreConfig; readonly request: StoreRequest; readonly timeoutMs: number }

export type StoreReply =
  | { readonly value: boolean | Uint8Array | ObjectFacts | readonly ObjectEntry[] | undefined }
  | { readonly error: string }

let opened: ReturnType<typeof openCopyStore> | undefined

serveTasks(
  async ({ config, request, timeoutMs }: StoreTask): Promise<StoreReply> => {
    try {
      opened ??= openCopyStore(config, system)
      const { store } = await opened
      const signal = system.clock.timeout(timeoutMs)
      const { call, key } = request
      if (call === 'list') return { value: await Array.fromAsync(store.list(key, signal)) }
      if (call !== 'putIfAbsent') return { value: await store[call](key, signal) }
      const options = { contentType: 'application/octet-stream', metadata: {}, attempts: 1, signal }
      return { value: await store.putIfAbsent(key, request.body, options) }
    } catch (error) {
      return { error: errorMessage(error) }
    }
  },
  { niceness: 0 },
)
