/** Faults of the disk, the clock and the buckets that the harness sets in a process under test while it runs. */

export type FileOperation = 'open' | 'create' | 'write' | 'read' | 'sync' | 'names' | 'list'

export type FileFault = {
  readonly code: 'ENOSPC' | 'EIO' | 'EROFS'
  readonly operations: readonly FileOperation[]
  /** A regular expression for the paths that it hits. */
  readonly matches: string
  /** Share of the operations that fail, from 0 to 1. */
  readonly share: number
}

export type BucketFault = {
  /** `refused`: a put fails. `answer lost`: it happens, but fails. `unreadable`: reads fail. `slow`: everything takes `delayMs` longer. */
  readonly kind: 'refused' | 'answer lost' | 'unreadable' | 'slow'
  readonly bucket: string
  readonly share: number
  readonly delayMs: number
}

export type Steering = {
  readonly files: readonly FileFault[]
  readonly buckets: readonly BucketFault[]
  /** Added to the wall clock, in milliseconds. */
  readonly clockOffsetMs: number
}

/** Argument that the harness passes to a process. */
export type Settings = { readonly journal: string; readonly graveyard: string; readonly steering: Steering }

export const noFaults: Steering = { files: [], buckets: [], clockOffsetMs: 0 }

/** The steering in force. The process reads it at each operation. */
export class Steered {
  now: Steering

  constructor(first: Steering) {
    this.now = first
  }
}
