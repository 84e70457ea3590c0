import type { FieldError } from '#errors.ts'
import type { Definition, DefinitionFormat } from '#model/definition.ts'
import type { ChangeView, CreateView } from '#model/view.ts'

/** What a process does. A body is the bytes of a request, which nobody has looked at yet. */
export type PreviewRequest =
  | { readonly preview: Uint8Array }
  | { readonly suggest: Uint8Array }
  /** The path of raw Parquet to read samples from. */
  | { readonly suggestFrom: string }
  | { readonly create: Uint8Array }
  /** The format is for a change that names none. */
  | { readonly change: Uint8Array; readonly format: DefinitionFormat }
  /** A definition from the store. */
  | { readonly compile: Definition }

/** Message to a preview process. */
export type PreviewTask = { readonly request: PreviewRequest; readonly timeoutMs: number }

/** A body whose definition is parsed and compiles. */
export type CheckedView = Omit<CreateView, 'definition'> & { readonly definition: Definition }
export type CheckedChange = Omit<ChangeView, 'definition'> & { readonly definition?: Definition | undefined }

/** Its reply. */
export type PreviewReply =
  /** The body of the response to a preview or suggestion: JSON. */
  | { readonly json: Uint8Array }
  /** The body of a suggestion names this endpoint instead of samples. */
  | { readonly endpointId: string }
  | { readonly view: CheckedView }
  | { readonly change: CheckedChange }
  | { readonly compiled: true }
  /** The body is not valid, the definition does not compile, or the samples cannot be read. */
  | { readonly rejected: { readonly message: string; readonly errors: readonly FieldError[] } }
  /** An unexpected error. */
  | { readonly crashed: string }

/** Sent before the samples of a preview are tried. */
export type PreviewReport = { readonly samples: number }
