/** Changes indexes of keys, one after the other, in a thread of its own: thread.ts starts it. */
import { parentPort } from 'node:worker_threads'
import { errorMessage } from '#lib/error-message.ts'
import {
  checkIndex,
  completeIndex,
  confirmSegment,
  findRegistered,
  forgetSegment,
  IndexDamaged,
  rangeFor,
  readState,
  registerKeys,
  shortenIndex,
} from './key-index.ts'
import { closeLookup, findKeys } from './key-lookup.ts'

const changing =
  <Parameters extends unknown[], Result>(operation: (...parameters: Parameters) => Result) =>
  (...parameters: Parameters): Result => {
    closeLookup()
    return operation(...parameters)
  }

export const indexOperations = {
  check: changing(checkIndex),
  state: readState,
  range: rangeFor,
  register: changing(registerKeys),
  confirm: changing(confirmSegment),
  forget: changing(forgetSegment),
  complete: changing(completeIndex),
  registered: findRegistered,
  find: findKeys,
  shorten: changing(shortenIndex),
} as const

export type IndexOperations = typeof indexOperations
export type IndexCall = {
  [Name in keyof IndexOperations]: { readonly operation: Name; readonly with: Parameters<IndexOperations[Name]> }
}[keyof IndexOperations]

/** Reply of the thread to a call. */
export type IndexReply =
  | { readonly number: number; readonly result: unknown }
  | { readonly number: number; readonly failure: { readonly message: string; readonly isDamaged: boolean } }

parentPort?.on('message', ({ number, call }: { readonly number: number; readonly call: IndexCall }) => {
  parentPort?.postMessage(reply(number, call))
})

function reply(number: number, { operation, with: parameters }: IndexCall): IndexReply {
  try {
    const run = indexOperations[operation] as (...parameters: readonly unknown[]) => unknown
    return { number, result: run(...parameters) }
  } catch (error) {
    return { number, failure: { message: errorMessage(error), isDamaged: error instanceof IndexDamaged } }
  }
}
