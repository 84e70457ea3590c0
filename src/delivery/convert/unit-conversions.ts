/** Converts the units of jobs. Their conversions follow the same policy as those of segments, but control repeats a unit that fails for a fault. */
import { assert } from '#lib/assert.ts'
import type { ArtifactKind } from '#model/artifact.ts'
import type { Definition } from '#model/definition.ts'
import type { Unit } from '#model/job-protocol.ts'
import { buildLimits, viewsTimeoutMs } from '#records/limits.ts'
import type { KeysOfCommit } from '#records/read-keys.ts'
import type { UnitFiles } from './build/build-unit.ts'
import type { BuiltFile } from './build/built-file.ts'
import { UnitViewFailed } from './build/failures.ts'
import type { Build, ConversionRunner } from './conversion-runner.ts'
import { examine } from './examination.ts'
import { unitTolerance } from './policy.ts'
import { repeatAttempts } from './repeat-attempts.ts'
import { type Built, filesIn, keysIn } from './reply.ts'
import { ViewProgress } from './view-progress.ts'

type UnitBuild = Pick<Build, 'inputs' | 'taskOf'> & {
  /** Files are written to a new directory under it, which stays if it succeeds. */
  readonly directory: string
  readonly viewTimeoutMs: number
  readonly onBlame?: Build['onBlame']
  readonly signal: AbortSignal
}

export type UnitConversion = Pick<UnitBuild, 'directory' | 'signal'> & {
  readonly unit: Unit
  /** The downloaded file. */
  readonly sourcePath: string
  readonly memoryBytes: number
}

export type MergeConversion = Pick<UnitBuild, 'directory' | 'signal'> & {
  /** Parquet files in the order of their rows. */
  readonly sources: readonly { readonly path: string; readonly rows: number }[]
  readonly kind: ArtifactKind
  readonly memoryBytes: number
}

/** Builds the files of a unit. Throws UnitViewFailed, SegmentError, a transient error, or the signal's reason. */
export async function convertUnit(runner: ConversionRunner, options: UnitConversion): Promise<UnitFiles> {
  const { unit, sourcePath, directory, memoryBytes, signal } = options
  // The source is compressed, so its size does not tell how long its records take.
  const viewTimeoutMs = buildLimits.viewTimeoutMsMax
  const { built, files } = await build(runner, {
    ...{ inputs: [sourcePath], directory, viewTimeoutMs, signal },
    taskOf: ({ directory, inside }, plan) => {
      return { kind: 'unit', unit, memoryBytes, viewTimeoutMs, sourcePath: inside(sourcePath), directory, plan }
    },
    onBlame: ({ reason }) => {
      throw new UnitViewFailed(reason, unit.source.artifact.rows)
    },
  })
  const [outcome] = built.views
  assert(outcome !== undefined, 'a unit has the outcome of its view')
  return { files, outcome }
}

/** Merges files into one. Throws a transient error, the signal's reason, or why they cannot be merged. */
export async function mergeFiles(runner: ConversionRunner, options: MergeConversion): Promise<BuiltFile> {
  const { sources, kind, directory, memoryBytes, signal } = options
  const { files } = await build(runner, {
    ...{ inputs: sources.map(({ path }) => path), directory, viewTimeoutMs: buildLimits.viewTimeoutMsMin, signal },
    taskOf: ({ directory, inside }) => {
      const insideSources = sources.map(({ path, rows }) => ({ path: inside(path), rows }))
      return { kind: 'merge', sources: insideSources, of: kind, directory, memoryBytes }
    },
  })
  const [file] = files
  assert(file !== undefined, 'a merge makes a file')
  return file
}

export type KeysConversion = Pick<UnitBuild, 'directory' | 'signal'> & {
  readonly definition: Definition
  readonly commits: readonly KeysOfCommit[]
  readonly memoryBytes: number
}

/** Returns the files of keys by the commits that they are of. Throws a transient error, the signal's reason, or why the files cannot be read. */
export async function readKeysOf(runner: ConversionRunner, options: KeysConversion): Promise<ReadonlyMap<string, string>> {
  const { definition, commits, directory, memoryBytes, signal } = options
  const inputs = [...new Set(commits.flatMap(({ files }) => files.map(({ path }) => path)))]
  const { built, directory: written } = await build(runner, {
    ...{ inputs, directory, viewTimeoutMs: buildLimits.viewTimeoutMsMax, signal },
    taskOf: ({ directory, inside }) => {
      const insideCommits = commits.map(({ id, files }) => ({
        id,
        files: files.map((file) => ({ ...file, path: inside(file.path) })),
      }))
      return { kind: 'keys', definition, commits: insideCommits, directory, memoryBytes }
    },
  })
  return keysIn(written, built)
}

type Result = { readonly built: Built; readonly files: readonly BuiltFile[]; readonly directory: string }

function build(runner: ConversionRunner, options: UnitBuild): Promise<Result> {
  const { directory: parent, viewTimeoutMs, signal, onBlame = () => undefined } = options
  let build: Build | undefined
  const discard = async () => {
    await build?.directory.remove()
    build = undefined
  }
  return repeatAttempts<Result>({
    tolerance: unitTolerance,
    async attempt() {
      try {
        build ??= {
          ...{ inputs: options.inputs, taskOf: options.taskOf, onBlame, views: [] },
          directory: await runner.createDirectory(parent),
          progress: new ViewProgress({
            ...{ views: [], isApart: true, viewTimeoutMs, viewsTimeoutMs: viewsTimeoutMs(0, 1, viewTimeoutMs) },
          }),
        }
        await runner.run(build, signal)
        const { built, directory } = build
        if (built === undefined) return { kind: 'unfinished' }
        build = undefined
        return { kind: 'done', result: { built, files: filesIn(directory.path, built), directory: directory.path } }
      } catch (error) {
        signal.throwIfAborted()
        const outcome = await examine(error, () => runner.probe(signal))
        signal.throwIfAborted()
        return outcome
      }
    },
    async carryOut(verdict, outcome) {
      if (verdict.kind === 'continue') return
      await discard()
      // A crash may be due to the node, so it has to happen twice. Control repeats what failed for a fault.
      const isRepeated = verdict.kind === 'retry' && outcome.kind === 'crashed'
      if (!isRepeated && 'error' in outcome) throw outcome.error
    },
    end: discard,
  })
}
