/**
 * A copy store as other processes see it.
 *
 * Law: a request that has begun is not given up when a signal aborts, so that what it puts can be removed.
 */
import { extname, join } from 'node:path'
import type { CopyStoreConfig } from '#copies/open-store.ts'
import type { SeenStore } from '#copies/store-steps.ts'
import type { Clock } from '#lib/clock.ts'
import { ProcessPool } from '#lib/process-pool.ts'
import type { ObjectEntry, ObjectFacts } from '#objects/object-store.ts'
import type { StoreReply, StoreRequest, StoreTask } from './store-process.ts'

const program = join(import.meta.dirname, `store-process${extname(import.meta.filename)}`)
const requestMsMax = 15_000
const idleMs = 600_000

export type OtherProcesses = {
  /** Requests that are sent at once go through as many processes. */
  readonly store: SeenStore
  /** Starts so many, each of which looks for the key. */
  warm(count: number, key: string): Promise<void>
  stop(): Promise<void>
}

export function startOtherProcesses(config: CopyStoreConfig, environment: NodeJS.ProcessEnv, clock: Clock): OtherProcesses {
  // Credentials, certificates and proxies may be in the environment alone.
  const pool = new ProcessPool<StoreTask, StoreReply>({ program, environment, idleMs, clock })
  const never = new AbortController().signal
  const ask = async (request: StoreRequest) => {
    const task = { config, request, timeoutMs: requestMsMax }
    const end = await pool.run(task, { timeoutMs: 2 * requestMsMax, signal: never })
    if ('exited' in end) throw new Error(`a process of this check did not run: it ${end.exited}`)
    if ('timedOut' in end) throw new Error(`the store did not answer within ${(2 * requestMsMax) / 1_000} s`)
    if ('error' in end.reply) throw new Error(end.reply.error)
    return end.reply.value
  }
  const store: SeenStore = {
    get: async (key) => (await ask({ call: 'get', key })) as Uint8Array | undefined,
    head: async (key) => (await ask({ call: 'head', key })) as ObjectFacts | undefined,
    putIfAbsent: async (key, body) => (await ask({ call: 'putIfAbsent', key, body })) as boolean,
    async *list(prefix) {
      yield* (await ask({ call: 'list', key: prefix })) as readonly ObjectEntry[]
    },
  }
  return {
    store,
    async warm(count, key) {
      // The check finds out what is wrong.
      await Promise.allSettled(Array.from({ length: count }, () => store.head(key)))
    },
    stop: () => pool.stop(),
  }
}
