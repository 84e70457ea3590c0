import { extname, join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { StorageFailure } from '#lib/storage-failure.ts'
import type { IndexCall, IndexOperations, IndexReply } from './index-thread.ts'
import { IndexDamaged } from './key-index.ts'

const program = join(import.meta.dirname, `index-thread${extname(import.meta.filename)}`)

/** Operations on indexes, without holding the event loop. Each throws IndexDamaged or StorageFailure. */
export type KeyIndexes = {
  readonly [Name in keyof IndexOperations]: (
    ...parameters: Parameters<IndexOperations[Name]>
  ) => Promise<ReturnType<IndexOperations[Name]>>
}

/** Runs index-thread.ts in a thread of this process, from the first call on. */
export class IndexThread {
  readonly #calls = new Map<number, PromiseWithResolvers<unknown>>()
  #worker: Worker | undefined
  #last = 0

  readonly indexes: KeyIndexes = {
    check: (...parameters) => this.#call({ operation: 'check', with: parameters }),
    state: (...parameters) => this.#call({ operation: 'state', with: parameters }),
    range: (...parameters) => this.#call({ operation: 'range', with: parameters }),
    register: (...parameters) => this.#call({ operation: 'register', with: parameters }),
    confirm: (...parameters) => this.#call({ operation: 'confirm', with: parameters }),
    forget: (...parameters) => this.#call({ operation: 'forget', with: parameters }),
    complete: (...parameters) => this.#call({ operation: 'complete', with: parameters }),
    registered: (...parameters) => this.#call({ operation: 'registered', with: parameters }),
    find: (...parameters) => this.#call({ operation: 'find', with: parameters }),
    shorten: (...parameters) => this.#call({ operation: 'shorten', with: parameters }),
  }

  /** A change that is being made is rolled back. */
  async stop(): Promise<void> {
    await this.#worker?.terminate()
    this.#end(new StorageFailure('the thread of the indexes was stopped'))
  }

  #call<T>(call: IndexCall): Promise<T> {
    const worker = this.#start()
    const number = this.#last + 1
    this.#last = number
    const answered = Promise.withResolvers<unknown>()
    this.#calls.set(number, answered)
    worker.postMessage({ number, call })
    return answered.promise as Promise<T>
  }

  #start(): Worker {
    if (this.#worker !== undefined) return this.#worker
    const worker = new Worker(program, { name: 'key indexes' })
    // It keeps no process alive.
    worker.unref()
    worker.on('message', (reply: IndexReply) => this.#settle(reply))
    worker.on('error', (error) => this.#end(error))
    this.#worker = worker
    return worker
  }

  #settle(reply: IndexReply): void {
    const call = this.#calls.get(reply.number)
    this.#calls.delete(reply.number)
    if ('result' in reply) call?.resolve(reply.result)
    else call?.reject(new (reply.failure.isDamaged ? IndexDamaged : StorageFailure)(reply.failure.message))
  }

  #end(error: unknown): void {
    this.#worker = undefined
    for (const { reject } of this.#calls.values()) reject(error)
    this.#calls.clear()
  }
}
