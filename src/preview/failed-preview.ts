/** Apart from preview.ts, so that control, which starts the workers, loads neither DuckDB nor the compiler. */
import type { PreviewIssue, PreviewResult } from '#model/preview.ts'

/** The result of a preview that failed as a whole. */
export function failedPreview(error: PreviewIssue): PreviewResult {
  const nothing = { rows: [], columns: [], rowCount: 0, compiledSql: '', warnings: [], executionTimeMs: 0 }
  return { ...nothing, success: false, errors: [error] }
}

export function timeoutIssue(limitMs: number): PreviewIssue {
  const message = `the preview took longer than ${limitMs / 1000} s: send fewer or smaller samples`
  return { sample_index: null, column: null, code: 'timeout', message }
}
