import type { FieldError } from '#errors.ts'
import type { DefinedPreview, PreviewResult } from '#model/preview.ts'
import type { Suggestion } from '#model/suggestion.ts'

/** Samples, or the raw Parquet that they are to be taken from. */
export type SampleSource = { readonly samples: readonly string[] } | { readonly parquet: string }

export type PreviewRequestOf = { readonly preview: DefinedPreview } | { readonly suggest: SampleSource }

/** What a preview process is sent. */
export type PreviewTask = { readonly request: PreviewRequestOf; readonly timeoutMs: number }

/** What it answers. */
export type PreviewAnswer =
  | { readonly result: PreviewResult }
  | { readonly suggestion: Suggestion }
  /** The definition does not compile. */
  | { readonly refused: { readonly message: string; readonly errors: readonly FieldError[] } }
  /** A failure that is nobody's but ours. */
  | { readonly crashed: string }
