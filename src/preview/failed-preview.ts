/** Apart from preview.ts, so that control, which starts the workers, loads neither DuckDB nor the compiler. */
import { AppError } from '#errors.ts'
import type { PreviewIssue, TriedView } from '#model/preview.ts'
import { failedCounts } from '#model/view-metrics.ts'

/** The result of a preview that failed as a whole on that many samples. */
export function failedPreview(error: PreviewIssue, samples: number): TriedView {
  const counts = { ...failedCounts(samples), duplicates: 0 }
  return { success: false, rows: [], columns: [], rowCount: 0, counts, warnings: [], errors: [error] }
}

export function timeoutIssue(limitMs: number): PreviewIssue {
  const message = `the preview took longer than ${limitMs / 1000} s: send fewer or smaller samples`
  return { sample_index: null, column: null, code: 'timeout', message }
}

/** Rounds a time in milliseconds to microseconds. */
export function toMicroseconds(ms: number): number {
  return Math.round(ms * 1000) / 1000
}

export function tooSlowToCompare(timeoutMs: number): AppError {
  return onDefinition(`comparing the first records took longer than ${timeoutMs / 1000} s: simplify the expressions`)
}

/** An error that is about a definition in a request as a whole. */
export function onDefinition(message: string): AppError {
  return new AppError('validation_error', message, { errors: [{ path: 'definition', message }] })
}
