import { useQuery } from '@tanstack/react-query'
import { useCallback, useMemo } from 'react'
import { secretsQuery } from '../../api/secrets.ts'
import { suggestionQuery, trialLimits } from '../../api/view-trials.ts'
import type { Definition, DefinitionFormat, ViewDetail } from '../../api/views.ts'
import { Button } from '../../design/button.tsx'
import { Callout } from '../../design/callout.tsx'
import { SelectField } from '../../design/field.tsx'
import { Section } from '../../design/layout.tsx'
import { CodeEditor } from '../../editor/code-editor.tsx'
import { languages } from '../../editor/languages.ts'
import { Failure } from '../../shell/failure.tsx'
import { useAccount, useMay } from '../../shell/session.tsx'
import { completeDefinition } from './definition-completion.ts'
import { addColumns, convertDefinition, hasComments, printDefinition, readDefinition } from './definition-text.ts'
import { MissingColumns } from './missing-columns.tsx'
import { ColumnsPreview, RowsPreview } from './preview-panel.tsx'
import { pathsOf } from './samples.ts'
import { TakeRecords, useTakeRecords } from './take-records.tsx'
import { usePreview } from './use-preview.ts'
import type { Samples as SamplesOfView } from './use-samples.ts'
import style from './views.module.css'

export type DefinitionDraft = { readonly text: string; readonly format: DefinitionFormat }

type WorkbenchProps = {
  readonly samples: SamplesOfView
  /** Its versions: their dead letters can be samples. */
  readonly versions: ViewDetail['versions']
  readonly draft: DefinitionDraft
  readonly onChange: (draft: DefinitionDraft) => void
}

const problemsShown = 5

/** A definition, samples, and what the one makes of the other. */
export function Workbench({ samples: { text, records: samples, change }, versions, draft, onChange }: WorkbenchProps) {
  const definition = useMemo(() => readDefinition(draft.text, draft.format), [draft])
  const preview = usePreview(draft.text, draft.format, samples)
  const add = (columns: Definition['columns']) => {
    const added = addColumns(draft.text, draft.format, columns)
    if (added !== undefined) onChange({ ...draft, text: added })
  }
  return (
    <div className={style.stack}>
      <div className={style.sides}>
        <DefinitionEditor
          draft={draft}
          definition={definition}
          samples={samples}
          problems={preview.problems}
          warnings={preview.warnings}
          onChange={onChange}
        />
        <Section title="Preview">
          <ColumnsPreview preview={preview} />
        </Section>
      </div>
      <div className={style.sides}>
        <SamplesEditor text={text} count={samples.length} versions={versions} onChange={change} />
        <Suggested samples={samples} definition={definition} draft={draft} onAdd={add} />
      </div>
      {preview.result !== undefined && <RowsPreview result={preview.result} />}
    </div>
  )
}

type DefinitionEditorProps = Omit<WorkbenchProps, 'samples' | 'versions'> & {
  readonly definition: Definition | undefined
  readonly samples: readonly string[]
  readonly problems: ReturnType<typeof usePreview>['problems']
  readonly warnings: ReturnType<typeof usePreview>['warnings']
}

function DefinitionEditor({ draft, definition, samples, problems, warnings, onChange }: DefinitionEditorProps) {
  const { text, format } = draft
  const paths = useMemo(() => pathsOf(samples), [samples])
  const secrets = useSecretNames(text)
  const complete = useCallback(
    (before: string, after: string) => {
      const columns = (readDefinition(before + after, format) ?? definition)?.columns.map(({ name }) => String(name)) ?? []
      return completeDefinition(before, after, { format, paths, columns, secrets })
    },
    [format, paths, definition, secrets],
  )
  const convert = (to: DefinitionFormat) => {
    const converted = convertDefinition(text, format, to)
    if (converted !== undefined) onChange({ text: converted, format: to })
  }
  const marked = useMemo(() => [...problems, ...warnings], [problems, warnings])
  const other = format === 'yaml' ? 'json' : 'yaml'
  const readable = definition !== undefined || convertDefinition(text, format, other) !== undefined
  return (
    <Section title="Definition">
      <SelectField
        label="Language"
        value={format}
        choices={formats}
        onChange={convert}
        disabled={!readable}
        hint={readable ? aboutComments(draft) : 'The text must parse before its language can change.'}
      />
      <CodeEditor
        label="Definition"
        language={languages[format]}
        value={text}
        onChange={(changed) => onChange({ text: changed, format })}
        problems={marked}
        complete={complete}
        look="tall"
      />
      {problems.length > 0 && (
        <Callout
          kind="bad"
          title={problems.length === 1 ? 'The definition has an error' : `The definition has ${problems.length} errors`}
        >
          <Problems problems={problems} />
        </Callout>
      )}
      {problems.length === 0 && warnings.length > 0 && (
        <Callout
          kind="warn"
          title={warnings.length === 1 ? 'A name makes work for readers' : `${warnings.length} names make work for readers`}
        >
          <Problems problems={warnings} />
        </Callout>
      )}
    </Section>
  )
}

/** Returns the names of the account's secrets once a definition hashes with one; none for people who may not see them. */
function useSecretNames(text: string): readonly string[] {
  const account = useAccount()
  const mayMember = useMay('member')
  const { data } = useQuery({ ...secretsQuery(account), enabled: mayMember && text.includes('hmac') })
  return useMemo(() => data?.items.map(({ name }) => name) ?? [], [data])
}

function Problems({ problems }: Pick<DefinitionEditorProps, 'problems'>) {
  return (
    <ul>
      {problems.slice(0, problemsShown).map(({ line, column, message }) => (
        <li key={`${line}:${column}:${message}`}>
          Line {line}, column {column}: {message}
        </li>
      ))}
      {problems.length > problemsShown && <li>The others are marked in the text.</li>}
    </ul>
  )
}

/** Says before it happens what a change of the language loses. */
function aboutComments({ text, format }: DefinitionDraft): string {
  return format === 'yaml' && hasComments(text)
    ? 'The text has comments. Changing the language removes them, and the draft is stored without them.'
    : 'Comments are not stored.'
}

const formats = [
  { value: 'yaml', label: 'YAML' },
  { value: 'json', label: 'JSON' },
] as const

type SamplesProps = Pick<WorkbenchProps, 'versions'> & {
  readonly text: string
  readonly count: number
  readonly onChange: (text: string) => void
}

function SamplesEditor({ text, count, versions, onChange }: SamplesProps) {
  const used = Math.min(count, trialLimits.samplesMax)
  const take = useTakeRecords(onChange)
  return (
    <Section
      title="Samples"
      about="Records as a client would send them: one JSON document, a list, or one per line. They stay in this tab."
      actions={
        <div className={style.row}>
          <TakeRecords versions={versions} take={take} />
          {text !== '' && (
            <Button size="small" onClick={() => onChange('')}>
              Clear samples
            </Button>
          )}
        </div>
      }
    >
      {take.isError && <Failure error={take.error} />}
      <CodeEditor
        label="Samples"
        language={languages.json}
        value={text}
        onChange={(changed) => {
          onChange(changed)
          take.reset()
        }}
        hint='{"type": "order", "amount": 12.5}'
      />
      <p className={style.quiet}>
        {count > used
          ? `The preview takes the first ${used} of ${count} records.`
          : count === 1
            ? '1 record'
            : `${count} records`}
      </p>
    </Section>
  )
}

type SuggestedProps = {
  readonly samples: readonly string[]
  readonly draft: DefinitionDraft
  readonly definition: Definition | undefined
  readonly onAdd: (columns: Definition['columns']) => void
}

function Suggested({ samples, draft, definition, onAdd }: SuggestedProps) {
  const taken = useMemo(() => samples.slice(0, trialLimits.samplesMax), [samples])
  const suggestion = useQuery(suggestionQuery(useAccount(), taken))
  // Nothing can be added to a text that does not parse.
  if (definition === undefined && draft.text.trim() !== '') return null
  if (suggestion.isError) return <Failure error={suggestion.error} />
  return suggestion.data && <MissingColumns suggestion={suggestion.data} definition={definition} onAdd={onAdd} />
}

/** Returns the text of a definition to edit; without one, an empty text. */
export function draftOf(format: DefinitionFormat, definition?: Definition): DefinitionDraft {
  return { format, text: definition === undefined ? '' : printDefinition(definition, format) }
}
