/**
 * Runs the shadows of a segment in a process of their own, once all files of the segment are built.
 *
 * Owns: that a shadow is left out whatever happens to it. Does not own: the files of other views (segment-build.ts), the counters.
 * Law: a shadow never fails an attempt. What it wrote is removed, and nothing of it is uploaded. One that failed rests for some segments.
 */
import { MiB } from '#lib/bytes.ts'
import type { ViewOutcome } from '#model/commit.ts'
import type { BoundView } from '#model/snapshot.ts'
import { failedCounts } from '#model/view-metrics.ts'
import type { Build, ConversionRunner } from './conversion-runner.ts'
import { conversionLimits } from './limits.ts'
import { filesIn } from './reply.ts'
import type { BuildRequest } from './segment-build.ts'
import type { ShadowRests } from './shadow-rests.ts'
import { ViewProgress } from './view-progress.ts'

export type ShadowRequest = Omit<BuildRequest, 'views' | 'outputFormats'> & {
  readonly shadows: readonly BoundView[]
  readonly records: number
  /** Returns the time now. */
  readonly at: () => string
}

/** Returns the outcomes of the shadows that ran. */
export async function buildShadows(
  runner: ConversionRunner,
  rests: ShadowRests,
  request: ShadowRequest,
  signal: AbortSignal,
): Promise<readonly ViewOutcome[]> {
  const shadows = request.shadows.filter((shadow) => !rests.skips(shadow))
  if (shadows.length === 0) return []
  const directory = await runner.createDirectory()
  const build = beginShadows(runner, { ...request, shadows }, directory)
  try {
    await runner.run(build, signal)
    const outcomes = build.built?.views ?? shadows.map((shadow) => tooExpensive(shadow, request))
    for (const { view_id, failed } of outcomes) {
      const shadow = shadows.find((each) => each.view_id === view_id)
      if (shadow === undefined) continue
      if (failed > 0) rests.add(shadow)
      else rests.end(shadow)
    }
    return outcomes.map((outcome) => ({ ...outcome, is_shadow: true as const }))
  } catch {
    // Somebody else gets the slot, or the process died. The segment does not wait for that.
    if (!signal.aborted) for (const shadow of shadows) rests.add(shadow)
    return []
  } finally {
    await directory.remove(build.built && filesIn(directory.path, build.built))
  }
}

function beginShadows(
  runner: ConversionRunner,
  { segment, bytes, memoryBytes, shadows }: ShadowRequest,
  directory: Build['directory'],
): Build {
  const { shadowTimeoutMs, shadowTimeoutMsPerMiB } = conversionLimits
  const viewTimeoutMs = shadowTimeoutMs + (bytes / MiB) * shadowTimeoutMsPerMiB
  return {
    directory,
    inputs: runner.filesOf(segment),
    views: shadows,
    progress: new ViewProgress({ views: shadows, isApart: false, viewTimeoutMs, viewsTimeoutMs: viewTimeoutMs }),
    taskOf: ({ source, directory: inside }, plan) => ({
      ...{ kind: 'segment', source, directory: inside, segment, outputFormats: ['parquet_views'], views: shadows },
      ...{ memoryBytes, viewTimeoutMs, plan },
    }),
    onBlame: () => undefined,
  }
}

function tooExpensive({ view_id, name, version }: BoundView, { records, at }: ShadowRequest): ViewOutcome {
  const message = 'the process that ran it as a shadow was ended: it took too long, or too much memory'
  return {
    ...{ view_id, view_name: name, view_version: version },
    ...failedCounts(records),
    cast_nulls: 0,
    errors: { view_failed: records },
    last_error: { code: 'too_expensive', message, at: at() },
  }
}
