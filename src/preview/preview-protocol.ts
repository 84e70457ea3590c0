import type { FieldError } from '#errors.ts'
import type { Definition, DefinitionFormat } from '#model/definition.ts'
import type { DlqRecordsQuery, RecordsQuery } from '#model/delivered-record.ts'
import type { DefinitionWarning } from '#model/preview.ts'
import type { SecretValues } from '#model/secret.ts'
import type { ChangeView, CreateView } from '#model/view.ts'
import type { CompareView } from '#model/view-comparison.ts'
import type { CompareTask } from './compare-stored.ts'

/** Rows to read from raw Parquet, all files in one directory. */
export type RawRowsTask = Pick<RecordsQuery, 'limit' | 'contains'> & {
  readonly files: readonly {
    readonly path: string
    readonly commit_id: string
    /** The rows of the commit, if the file has others too. */
    readonly part?: { readonly first_row: number; readonly rows: number }
  }[]
}

/** Rows to read from DLQ files, all in one directory. */
export type DlqRowsTask = Pick<DlqRecordsQuery, 'limit' | 'error_code' | 'column'> & {
  readonly files: readonly { readonly path: string; readonly endpoint_id: string }[]
}

/** Secrets that a preview hashes with, and whether they are others than those of the account. */
export type PreviewSecrets = { readonly values: SecretValues; readonly areStandIns: boolean }

/** Task of a process. `secrets` are those of the account, by name where nothing is hashed. A body is the bytes of a request, which nobody has parsed yet. */
export type PreviewRequest =
  | { readonly preview: Uint8Array; readonly secrets: PreviewSecrets }
  | { readonly suggest: Uint8Array }
  /** The path of raw Parquet to read samples from. */
  | { readonly suggestFrom: string }
  | { readonly create: Uint8Array; readonly secrets: readonly string[] }
  /** The format is for a change that names none. */
  | { readonly change: Uint8Array; readonly format: DefinitionFormat; readonly secrets: readonly string[] }
  | { readonly rawRows: RawRowsTask }
  | { readonly dlqRows: DlqRowsTask }
  /** Paths of DLQ files whose reasons are counted, all in one directory. */
  | { readonly dlqReasons: readonly string[] }
  /** The format is for a definition that comes without one. */
  | { readonly readComparison: Uint8Array; readonly format: DefinitionFormat; readonly secrets: readonly string[] }
  | { readonly compare: CompareTask }
  /** A definition from the store. */
  | { readonly compile: Definition; readonly secrets: readonly string[] }

/** Message to a preview process. */
export type PreviewTask = { readonly request: PreviewRequest; readonly timeoutMs: number }

/** A definition that is parsed and compiles, and the secrets that it names. */
export type CheckedDefinition = {
  readonly definition: Definition
  readonly secrets: readonly string[]
  readonly warnings: readonly DefinitionWarning[]
}
export type ReadView = Omit<CreateView, 'definition'> & CheckedDefinition
export type CheckedChange = Omit<ChangeView, 'definition'> & Pick<CheckedDefinition, 'warnings'> & Partial<CheckedDefinition>

/** A request to compare. Its definition compiles. */
export type ReadComparison = Omit<CompareView, 'definition' | 'format'> & { readonly definition?: Definition | undefined }

/** Its reply. */
export type PreviewReply =
  /** The body of a response: JSON. */
  | { readonly json: Uint8Array }
  /** The body of a suggestion names this endpoint instead of samples. */
  | { readonly endpointId: string }
  | { readonly view: ReadView }
  | { readonly change: CheckedChange }
  | { readonly compiled: CheckedDefinition }
  | { readonly comparison: ReadComparison }
  /** Why the files of a task cannot be read. */
  | { readonly unreadable: string }
  /** The body is not valid, the definition does not compile, or the samples cannot be read. */
  | { readonly rejected: { readonly message: string; readonly errors: readonly FieldError[] } }
  /** An unexpected error. */
  | { readonly crashed: string }

/** Sent before the samples of a preview are tried. */
export type PreviewReport = { readonly samples: number }
