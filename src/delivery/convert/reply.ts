/** Interprets the reply of a conversion process for the delivery process. */
import { basename, join } from 'node:path'
import { assert } from '#lib/assert.ts'
import { SegmentError } from '#log/segment-error.ts'
import type { BoundView } from '#model/snapshot.ts'
import type { BuiltFile } from './build/built-file.ts'
import { RequiredViewFailed, UnitViewFailed } from './build/failures.ts'
import { TransientError } from './build/transient-error.ts'
import type { ConvertReply, Failure } from './worker/protocol.ts'
import type { WorkerAccess } from './worker-access.ts'

export type Built = Exclude<ConvertReply, { readonly failure: Failure }>

/** Returns the error that was thrown in the process, as far as its kind matters. */
export function toError(failure: Failure, views: readonly BoundView[], access: WorkerAccess): Error {
  switch (failure.kind) {
    case 'required view':
      return new RequiredViewFailed(viewAt(views, failure.view), failure.reason)
    case 'unit view':
      return new UnitViewFailed(failure.reason, failure.records)
    case 'segment':
      return new SegmentError(access.outside(failure.path), failure.problem, failure.offset, failure.message)
    case 'fault':
      return new TransientError(failure.message)
    case 'other':
      return new Error(failure.message)
  }
}

export function viewAt(views: readonly BoundView[], position: number): BoundView {
  const view = views[position]
  assert(view !== undefined, 'a conversion process names a view of its task')
  return view
}

/** Returns the paths of files of keys, by what they are of. */
export function keysIn(directory: string, { keys = [] }: Built): ReadonlyMap<string, string> {
  return new Map(
    keys.map(({ of, name }) => {
      assert(name === basename(name), 'a conversion process writes into its directory')
      return [of, join(directory, name)]
    }),
  )
}

/** Returns the built files with their paths. */
export function filesIn(directory: string, { files }: Built): readonly BuiltFile[] {
  return files.map(({ name, ...file }) => {
    assert(name === basename(name), 'a conversion process writes into its directory')
    return { ...file, path: join(directory, name) }
  })
}
