/** Runs one task of a conversion process. */
import { readdir, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { KiB } from '#lib/bytes.ts'
import { systemClock } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import { type Files, systemFiles } from '#lib/files.ts'
import type { Ask } from '#lib/serve-tasks.ts'
import { LocalSegmentSource } from '#log/local/segment-source.ts'
import { SegmentError } from '#log/segment-error.ts'
import type { SegmentReader } from '#log/segment-source.ts'
import { mergeParquet } from '#records/merge-parquet.ts'
import { type KeysFile, readKeys } from '#records/read-keys.ts'
import { buildFiles, duckdbBytes, type SegmentFiles } from '../build/build.ts'
import { buildUnit } from '../build/build-unit.ts'
import type { FindKeys, SettledView } from '../build/build-views.ts'
import { type BuiltFile, describeFile } from '../build/built-file.ts'
import { firstLine, RequiredViewFailed, UnitViewFailed } from '../build/failures.ts'
import { isTransient, TransientError } from '../build/transient-error.ts'
import { probeSegment } from './probe-segment.ts'
import type {
  ConvertReply,
  ConvertTask,
  Failure,
  KeyAnswer,
  KeyQuestion,
  KeysTask,
  MergeTask,
  NamedFile,
  NamedKeys,
  SegmentTask,
  Step,
} from './protocol.ts'
import { SharedDatabase } from './shared-database.ts'

/** Never aborts: the parent kills this process instead. */
const { signal } = new AbortController()

/** DuckDB's share of the memory. It does not count all its allocations, but nearly all of those of a merge. */
const MERGE_SHARE = 7 / 8

/** Size of the largest segment that uses the shared database. */
const sharedBytesMax = 256 * KiB
/** For a view that takes longer, sharing saves nothing. */
const sharedViewTimeoutMsMax = 5_000
const shared = new SharedDatabase()

export async function runTask(
  task: ConvertTask,
  report: (step: Step) => void,
  ask: Ask = noAnswers,
  files: Files = systemFiles,
): Promise<ConvertReply> {
  try {
    const built = await build(task, report, findKeysBy(ask), files)
    const { keys, ...others } = built
    return {
      ...others,
      files: built.files.map(toNamed),
      ...(keys !== undefined && keys.length > 0 && { keys: keys.map(toNamedKeys) }),
    }
  } catch (error) {
    return { failure: toFailure(error, task) }
  }
}

async function build(
  task: ConvertTask,
  reportStep: (step: Step) => void,
  findKeys: FindKeys,
  files: Files,
): Promise<Omit<SegmentFiles, 'failed'> & { readonly failed: readonly { readonly view: number; readonly reason: string }[] }> {
  const report = (views: readonly number[], settled?: SettledView) => reportStep({ views, settled })
  if (task.kind === 'merge') return { files: [await merge(task, report)], views: [], failed: [] }
  if (task.kind === 'keys') return { files: [], views: [], failed: [], keys: await keysOf(task, report) }
  const common = { ...task, report, findKeys, signal, clock: systemClock }
  switch (task.kind) {
    case 'segment': {
      report([])
      const reader = await new LocalSegmentSource({ directory: task.source, files, clock: systemClock }).open(task.segment)
      try {
        const { failed, ...built } =
          (await buildShared(task, reader, reportStep, findKeys)) ?? (await buildFiles({ ...common, ...task, segment: reader }))
        const reasons = failed.map(({ view, error }) => ({ view: task.views.indexOf(view), reason: firstLine(error) }))
        return { ...built, failed: reasons }
      } finally {
        await reader.close()
      }
    }
    case 'probe':
      return { ...(await buildFiles({ ...common, segment: probeSegment(), outputFormats: ['parquet'], views: [] })), failed: [] }
    case 'unit': {
      const built = await buildUnit({ ...common, ...task, files })
      return { files: built.files, views: [built.outcome], failed: [] }
    }
  }
}

/**
 * Builds the files of a small segment in the shared database. Returns undefined, and leaves no file, if the segment is not small or anything
 * fails: only a database of its own shows whether that is due to the segment. So the first view that fails ends it, and none is reported as
 * settled.
 */
async function buildShared(
  task: SegmentTask,
  segment: SegmentReader,
  report: (step: Step) => void,
  findKeys: FindKeys,
): Promise<SegmentFiles | undefined> {
  const { directory, plan } = task
  const isRepeated = plan.isApart || plan.failed.length > 0 || (plan.built ?? []).length > 0
  if (segment.bytes > sharedBytesMax || isRepeated) return undefined
  const options = { directory: dirname(directory), memoryBytes: duckdbBytes(task.memoryBytes) }
  const built = await shared.use(options, (database) =>
    buildFiles({
      ...{ ...task, segment, database, findKeys, signal, clock: systemClock },
      views: task.views.map((view) => ({ ...view, is_required: true })),
      viewTimeoutMs: Math.min(task.viewTimeoutMs, sharedViewTimeoutMsMax),
      report: (views) => report({ views, isTrial: true }),
    }),
  )
  if (built === undefined)
    for (const name of await readdir(directory)) await rm(join(directory, name), { recursive: true, force: true })
  return built
}

async function merge(
  { sources, of, directory, memoryBytes }: MergeTask,
  report: (views: readonly number[]) => void,
): Promise<BuiltFile> {
  report([])
  const path = join(directory, 'merged.parquet')
  const rows = await mergeParquet({ sources, path, memoryBytes: Math.floor(memoryBytes * MERGE_SHARE), signal })
  return { kind: of, rows, ...(await describeFile(path, signal)) }
}

const noAnswers: Ask = () => Promise.reject(new Error('this task has nobody to ask'))

/** Delivery has the indexes of keys: this process does not read them. */
function findKeysBy(ask: Ask): FindKeys {
  return async (viewId, keys) => {
    const question: KeyQuestion = { viewId, keys }
    const answer = (await ask(question)) as KeyAnswer
    if ('failure' in answer) throw new TransientError(answer.failure)
    return answer.found
  }
}

function keysOf({ memoryBytes, ...task }: KeysTask, report: (views: readonly number[]) => void): Promise<readonly KeysFile[]> {
  report([])
  return readKeys({ ...task, memoryBytes: Math.floor(memoryBytes * MERGE_SHARE), signal })
}

function toNamedKeys({ path, of }: KeysFile): NamedKeys {
  return { of, name: basename(path) }
}

/** A path outside of the directory of the task would mean nothing to the parent, so it gets names. */
function toNamed({ path, ...file }: BuiltFile): NamedFile {
  return { ...file, name: basename(path) }
}

function toFailure(error: unknown, task: ConvertTask): Failure {
  if (error instanceof RequiredViewFailed && task.kind === 'segment')
    return { kind: 'required view', view: task.views.indexOf(error.view), reason: error.reason }
  if (error instanceof UnitViewFailed) return { kind: 'unit view', reason: error.message, records: error.records }
  if (error instanceof SegmentError) {
    const { path, problem, offset, message } = error
    return { kind: 'segment', path, problem, offset, message: message.slice(path.length + 2) }
  }
  return { kind: isTransient(error) ? 'fault' : 'other', message: errorMessage(error) }
}
