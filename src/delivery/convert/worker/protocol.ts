/** Messages between the delivery process and its conversion processes. */

import type { SegmentProblem } from '#log/segment-error.ts'
import type { SegmentRef } from '#log/segment-source.ts'
import type { ArtifactKind } from '#model/artifact.ts'
import type { ViewOutcome } from '#model/commit.ts'
import type { Definition } from '#model/definition.ts'
import type { OutputFormat } from '#model/endpoint.ts'
import type { Unit } from '#model/job-protocol.ts'
import type { KeysOfCommit } from '#records/read-keys.ts'
import type { SettledView, ViewPlan, WindowedView } from '../build/build-views.ts'

type Build = {
  /** An empty directory for the files. */
  readonly directory: string
  /** For this conversion. */
  readonly memoryBytes: number
  readonly viewTimeoutMs: number
  readonly plan: ViewPlan
}

export type SegmentTask = Build & {
  readonly kind: 'segment'
  /** Location of the source with which the process opens the segment itself. */
  readonly source: string
  readonly segment: SegmentRef
  readonly outputFormats: readonly OutputFormat[]
  readonly views: readonly WindowedView[]
}

/** Converts a record that is known to be good. */
export type ProbeTask = Omit<Build, 'plan'> & { readonly kind: 'probe' }

export type UnitTask = Build & { readonly kind: 'unit'; readonly unit: Unit; readonly sourcePath: string }

/** Merges Parquet files of one kind into one. */
export type MergeTask = Pick<Build, 'directory' | 'memoryBytes'> & {
  readonly kind: 'merge'
  readonly sources: readonly { readonly path: string; readonly rows: number }[]
  readonly of: ArtifactKind
}

/** Reads the keys of files that were delivered. */
export type KeysTask = Pick<Build, 'directory' | 'memoryBytes'> & {
  readonly kind: 'keys'
  readonly definition: Definition
  readonly commits: readonly KeysOfCommit[]
}

export type ConvertTask = SegmentTask | ProbeTask | UnitTask | MergeTask | KeysTask

/** Sent before each step of a task: the positions of the views that it works on. None, if it works on the records. */
export type Step = {
  readonly views: readonly number[]
  readonly settled?: SettledView | undefined
  /** If a view fails, the same work is done again: what this takes is not taken from the time of all views. */
  readonly isTrial?: boolean
}

/** Asks which of the keys of a view, of 16 bytes each, earlier segments wrote. */
export type KeyQuestion = { readonly viewId: string; readonly keys: Uint8Array }
export type KeyAnswer = { readonly found: Uint8Array } | { readonly failure: string }

/** A built file, by its name in the directory of the task. */
export type NamedFile = {
  readonly kind: ArtifactKind
  readonly name: string
  readonly bytes: number
  readonly rows: number
  readonly sha256: string
  readonly view?: { readonly id: string; readonly version: number }
}

/** A file of the keys of a view, or of a commit, by its name in the directory of the task. */
export type NamedKeys = { readonly of: string; readonly name: string }

/** An error of a task. `fault`: of the node, so a later attempt may succeed. */
export type Failure =
  | { readonly kind: 'required view'; readonly view: number; readonly reason: string }
  | { readonly kind: 'unit view'; readonly reason: string; readonly records: number }
  | {
      readonly kind: 'segment'
      readonly path: string
      readonly problem: SegmentProblem
      readonly offset: number
      readonly message: string
    }
  | { readonly kind: 'fault' | 'other'; readonly message: string }

export type ConvertReply =
  | {
      readonly files: readonly NamedFile[]
      readonly views: readonly ViewOutcome[]
      /** Optional views of a segment that failed. */
      readonly failed: readonly { readonly view: number; readonly reason: string }[]
      readonly keys?: readonly NamedKeys[]
    }
  | { readonly failure: Failure }
