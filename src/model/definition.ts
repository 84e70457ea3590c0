import { z } from 'zod'
import { duration } from './duration.ts'
import { Id } from './id.ts'
import { definitionLimits } from './limits.ts'
import { mayNeedSecrets, SecretValues } from './secret.ts'
import { lineOfText, paragraphs } from './text.ts'
import { parquetForms } from './types/file-form.ts'

/**
 * The shape of a view definition. The view compiler checks the meaning of its parts (types, paths, conditions), so a definition that is
 * valid here may still be rejected there.
 */
export const CastFailures = z.enum(['null', 'dlq'])
export type CastFailures = z.infer<typeof CastFailures>

/** Lists by `[*]`: an element without the rest of the path is NULL, so that lists of one array align, or is left out. */
export const ListForm = z.enum(['aligned', 'packed'])
export type ListForm = z.infer<typeof ListForm>

export const Column = z
  .strictObject({
    name: lineOfText(definitionLimits.columnNameBytesMax)
      .min(1)
      .refine(
        (name) => Buffer.byteLength(name) <= definitionLimits.columnNameBytesMax,
        `must be at most ${definitionLimits.columnNameBytesMax} bytes of UTF-8`,
      )
      .meta({ examples: ['user_id'] }),
    type: z
      .string()
      .min(1)
      .max(128)
      .meta({
        description: 'a list type such as VARCHAR[] if the path has [*], and a scalar if it names a field of the envelope',
        examples: ['VARCHAR'],
      }),
    path: z
      .string()
      .min(1)
      .max(definitionLimits.pathCharsMax)
      .optional()
      .meta({ description: 'a JSONPath, or $$.<field> of the envelope: docs/views.md', examples: ['$.user.id'] }),
    format: z
      .string()
      .min(1)
      .max(definitionLimits.formatCharsMax)
      .optional()
      .meta({
        description:
          'how times at the path are written if not in ISO 8601: `epoch_s`, `epoch_ms`, `epoch_us` or `epoch_ns` for numbers since 1970, or a format of strptime',
        examples: ['epoch_ms'],
      }),
    value: z
      .string()
      .min(1)
      .max(definitionLimits.conditionCharsMax)
      .optional()
      .meta({
        description:
          'instead of `path`: an expression over other columns of this definition and $$.<field> of the envelope: docs/views.md',
        examples: ['round(price * quantity, 2)'],
      }),
    hidden: z.boolean().optional().meta({ description: 'other columns and filters can use it, but it is not written' }),
    required: z.boolean().optional(),
    cast_failures: CastFailures.optional(),
    parquet: z.enum(parquetForms).optional().meta({
      description:
        'how Parquet stores the column; if not set, in a form that every engine reads. `native` stores a UUID, TIME, JSON or unsigned integer as such, `naive` a TIMESTAMP that is not marked as UTC',
    }),
  })
  .superRefine(({ path, value, format }, context) => {
    if (format !== undefined && value !== undefined) {
      context.addIssue({
        code: 'custom',
        path: ['format'],
        message: 'must be beside a path, not a value: use a function such as epoch_ms(…)',
      })
    }
    if (path !== undefined && value !== undefined) {
      context.addIssue({ code: 'custom', path: ['value'], message: 'must not be beside a path: give one of the two' })
    } else if (path === undefined && value === undefined) {
      context.addIssue({
        code: 'custom',
        path: ['path'],
        message: 'must be given, such as $.user.id, or a value, such as lower(name)',
      })
    }
  })
  .meta({ description: 'has either a path or a value' })
export type Column = z.infer<typeof Column>

export const Filter = z.strictObject({
  condition: z
    .string()
    .min(1)
    .max(definitionLimits.conditionCharsMax)
    .meta({ description: 'names only columns of this definition: docs/views.md', examples: ["event_type != 'heartbeat'"] }),
  description: paragraphs(1024)
    .meta({ examples: ['skip heartbeats'] })
    .optional(),
})
export type Filter = z.infer<typeof Filter>

/** The name of a column of the same definition, in any case. */
const ColumnReference = z
  .string()
  .min(1)
  .max(definitionLimits.columnNameBytesMax)
  .meta({ examples: ['country'] })

/** Language of a definition that is sent as text. */
export const DefinitionFormat = z.enum(['yaml', 'json'])
export type DefinitionFormat = z.infer<typeof DefinitionFormat>

export const Definition = z.strictObject({
  columns: z
    .array(Column)
    .min(1, 'must have at least one column')
    .max(definitionLimits.columnsMax)
    .superRefine((columns, context) => {
      const seen = new Map<string, number>()
      if (columns.length > 0 && columns.every(({ hidden }) => hidden === true)) {
        context.addIssue({ code: 'custom', message: 'must have at least one column that is not hidden' })
      }
      for (const [index, { name }] of columns.entries()) {
        // DuckDB and other readers of Parquet ignore the case of column names.
        const first = seen.get(name.toLowerCase())
        if (first === undefined) seen.set(name.toLowerCase(), index)
        else
          context.addIssue({
            code: 'custom',
            path: [index, 'name'],
            message: `must differ from the name of column ${first}, also if case is ignored`,
          })
      }
    })
    .meta({ description: 'their names differ, also if case is ignored' }),
  filters: z.array(Filter).max(definitionLimits.filtersMax).optional(),
  dedupe_by: z
    .array(ColumnReference)
    .min(1)
    .max(definitionLimits.keyColumnsMax)
    .optional()
    .meta({
      description:
        'of the rows of a segment that have the same values in these columns, only the first is written; the others are counted as `duplicates`',
      examples: [['event_id']],
    }),
  dedupe_within: duration(definitionLimits.windowSeconds.min, definitionLimits.windowSeconds.max)
    .meta({
      description:
        'with `dedupe_by`: rows are also compared with those that the node wrote in segments before, if these were sealed at most so long before. If not set, with the same segment only',
      examples: ['24h'],
    })
    .optional(),
  partition_by: z
    .array(ColumnReference)
    .min(1)
    .max(definitionLimits.partitionColumnsMax)
    .optional()
    .meta({
      description:
        'columns whose values name folders, such as `country=DE`, instead of being in the files: each segment has a file for each combination of values',
      examples: [['country']],
    }),
  sort_by: z
    .array(ColumnReference)
    .min(1)
    .max(definitionLimits.sortColumnsMax)
    .optional()
    .meta({
      description: 'the rows of each file are in the order of these columns, so that readers of few values skip parts of it',
      examples: [['user_id', 'created_at']],
    }),
  bloom_filters: z.boolean().optional().meta({
    description:
      'whether files have Bloom filters for columns with few different values, which is the default: `false` saves their space',
  }),
  expand: z
    .string()
    .min(1)
    .max(definitionLimits.pathCharsMax)
    .optional()
    .meta({
      description:
        'a path that ends with [*]: each element of the array is a row, which columns read at `$item`. It may have two [*]: then `$parent` is the element of the outer array. docs/views.md',
      examples: ['$.items[*]'],
    }),
  lists: ListForm.optional().meta({
    description:
      'what a list has for an element of `[*]` in which the rest of the path finds nothing: NULL (`aligned`, the default), or nothing (`packed`). Versions that were created before this choice have none, and are packed',
  }),
})
export type Definition = z.infer<typeof Definition>

/** Whether a path goes on after [*], so that the form of lists matters. In a quoted name it makes no difference. */
export function isListFormed({ columns }: Definition): boolean {
  return columns.some(({ path = '' }) => /\[\s*\*\s*\]\s*[.[]/.test(path))
}

/** Returns the definition as it is stored from now on: with the default written down, if it matters. */
export function withListForm(definition: Definition): Definition {
  return definition.lists === undefined && isListFormed(definition) ? { ...definition, lists: 'aligned' } : definition
}

/** A definition in a request: an object or text. */
export const DefinitionInput = z.union([
  Definition,
  z
    .string()
    .max(definitionLimits.textCharsMax)
    .meta({
      description: 'the definition as text, in the language named by `format`',
      examples: ['{"columns":[{"name":"user_id","type":"VARCHAR","path":"$.user.id"}]}'],
    }),
])
export type DefinitionInput = z.infer<typeof DefinitionInput>

/** Returns the columns that files of the view have. */
export function writtenColumns<C extends { readonly hidden?: boolean | undefined }>(columns: readonly C[]): readonly C[] {
  return columns.filter(({ hidden }) => hidden !== true)
}

/**
 * A view version as control sends it to nodes. Those of the release before reject fields of a definition that they do not know, so the form of
 * lists is beside it. One that needs more than they know is whole in `computed`: they get a definition that fails to compile in its place, which
 * counts its records as failed. A definition that may name secrets has those that it names beside it.
 */
export const SentView = z.object({
  id: Id,
  name: z.string(),
  version: z.int(),
  definition: Definition,
  lists: ListForm.optional(),
  computed: Definition.optional(),
  secrets: SecretValues.optional(),
})
export type SentView = z.infer<typeof SentView>

const onlyForNewerNodes: Definition = { columns: [{ name: 'computed', type: 'VARCHAR', path: '$$.needs_a_newer_node' }] }

/** Returns the view as control sends it. `secrets` are those that its definition names, as far as there are any. */
export function toSentView<View extends { readonly definition: Definition }>(
  view: View,
  secrets: SecretValues = {},
): View & Pick<SentView, 'lists' | 'computed' | 'secrets'> {
  const { definition } = view
  const named = mayNeedSecrets(definition) ? { secrets } : {}
  const { columns, filters: _filters, lists: _lists, ...newer } = definition
  const isKnownToOlder =
    Object.values(newer).every((each) => each === undefined) &&
    columns.every(({ value, hidden, format }) => value === undefined && hidden === undefined && format === undefined)
  if (!isKnownToOlder) return { ...view, ...named, definition: onlyForNewerNodes, computed: definition }
  const { lists, ...known } = definition
  return { ...view, ...named, definition: known, ...(lists === undefined ? {} : { lists }) }
}

/** Returns the view as it was before `toSentView`. */
export function fromSentView({ lists, computed, definition, ...view }: SentView) {
  return { ...view, definition: computed ?? (lists === undefined ? definition : { ...definition, lists }) }
}

/** Whether a stored view has all that control sent. A process of the release before left out the fields that it did not know. */
export function isSentComplete(view: SentView): boolean {
  const isReplaced = view.definition.columns.some(({ path }) => path === onlyForNewerNodes.columns[0]?.path)
  if (isReplaced && view.computed === undefined) return false
  return view.secrets !== undefined || !mayNeedSecrets(fromSentView(view).definition)
}
