import type { FieldError } from '#errors.ts'
import type { DefinedPreview, PreviewResult } from '#model/preview.ts'

/** What a preview process is sent. */
export type PreviewTask = { readonly request: DefinedPreview; readonly timeoutMs: number }

/** What it answers. */
export type PreviewAnswer =
  | { readonly result: PreviewResult }
  /** The definition does not compile. */
  | { readonly refused: { readonly message: string; readonly errors: readonly FieldError[] } }
  /** A failure that is nobody's but ours. */
  | { readonly crashed: string }
