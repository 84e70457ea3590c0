import type { FieldError } from '#errors.ts'
import type { DefinedPreview, PreviewResult } from '#model/preview.ts'
import type { Suggestion } from '#model/suggestion.ts'

/** Samples, or the path of the raw Parquet to read them from. */
export type SampleSource = { readonly samples: readonly string[] } | { readonly parquet: string }

export type PreviewRequest = { readonly preview: DefinedPreview } | { readonly suggest: SampleSource }

/** Message to a preview process. */
export type PreviewTask = { readonly request: PreviewRequest; readonly timeoutMs: number }

/** Its reply. */
export type PreviewReply =
  | { readonly result: PreviewResult }
  | { readonly suggestion: Suggestion }
  /** The definition does not compile, or the samples cannot be read. */
  | { readonly rejected: { readonly message: string; readonly errors: readonly FieldError[] } }
  /** An unexpected error. */
  | { readonly crashed: string }
