import { useMutation } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import type { Endpoint } from '../../api/endpoints.ts'
import { suggestForEndpoint, suggestFrom, trialLimits } from '../../api/view-trials.ts'
import { Button } from '../../design/button.tsx'
import { Callout } from '../../design/callout.tsx'
import { SelectField } from '../../design/field.tsx'
import { Section } from '../../design/layout.tsx'
import { Failure } from '../../shell/failure.tsx'
import { notesOf } from './columns-to-add.ts'
import style from './views.module.css'
import { type DefinitionDraft, draftOf } from './workbench.tsx'

const route = getRouteApi('/signed-in/in/$account/views/new')

type SuggestFormProps = {
  readonly endpoints: readonly Endpoint[]
  readonly samples: readonly string[]
  readonly draft: DefinitionDraft
  readonly onSuggest: (draft: DefinitionDraft) => void
}

/** Begins a definition. Samples that somebody chose say more than the last records of an endpoint. */
export function SuggestForm({ endpoints, samples, draft, onSuggest }: SuggestFormProps) {
  const { endpoint } = route.useSearch()
  const navigate = route.useNavigate()
  const chosen = endpoints.find(({ id }) => id === endpoint) ?? endpoints[0]
  const used = samples.slice(0, trialLimits.samplesMax)
  const suggest = useMutation({
    mutationFn: ({ from, id }: { readonly from: readonly string[]; readonly id: string }) =>
      from.length > 0 ? suggestFrom(from) : suggestForEndpoint(id),
    onSuccess: ({ definition }) => {
      if (definition !== null) onSuggest(draftOf(draft.format, definition))
    },
  })
  if (chosen === undefined && used.length === 0) return null
  // A suggestion from other records says nothing about these.
  const isCurrent =
    used.length === 0
      ? suggest.variables?.id === chosen?.id && suggest.variables?.from.length === 0
      : isSame(suggest.variables?.from, used)
  return (
    <Section
      title={used.length > 0 ? 'Begin with your samples' : 'Begin with what an endpoint received'}
      about={
        used.length > 0
          ? `Columns follow from the ${used.length === 1 ? 'record' : `${used.length} records`} in Samples. Clear them to use the last records of an endpoint.`
          : undefined
      }
    >
      <div className={style.row}>
        {used.length === 0 && chosen !== undefined && (
          <SelectField
            label="Endpoint"
            value={chosen.id}
            choices={endpoints.map(({ id, name }) => ({ value: id, label: name }))}
            onChange={(id) => void navigate({ search: { endpoint: id }, replace: true })}
          />
        )}
        <Button busy={suggest.isPending} onClick={() => suggest.mutate({ from: used, id: chosen?.id ?? '' })}>
          {draft.text.trim() === '' ? 'Suggest definition' : 'Replace definition'}
        </Button>
      </div>
      {isCurrent && suggest.isError && <Failure error={suggest.error} />}
      {isCurrent && suggest.data !== undefined && (
        <Notes notes={[...notesOf(suggest.data)]} isEmpty={suggest.data.definition === null} />
      )}
    </Section>
  )
}

const isSame = (a: readonly string[] | undefined, b: readonly string[]) =>
  a?.length === b.length && a.every((each, index) => each === b[index])

type NotesProps = { readonly notes: readonly (readonly [string, string])[]; readonly isEmpty: boolean }

function Notes({ notes, isEmpty }: NotesProps) {
  if (isEmpty) return <p className={style.quiet}>No column follows from these records: they are empty, or not JSON objects.</p>
  if (notes.length === 0) return null
  return (
    <Callout title={notes.length === 1 ? 'Look at one column' : `Look at ${notes.length} columns`}>
      <ul>
        {notes.map(([path, note]) => (
          <li key={path}>{note}</li>
        ))}
      </ul>
    </Callout>
  )
}
