import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useRef, useState } from 'react'
import { ApiError } from '../../api/client.ts'
import { endpointsQuery } from '../../api/endpoints.ts'
import { createView, viewsKey } from '../../api/views.ts'
import { Button } from '../../design/button.tsx'
import { TextField } from '../../design/field.tsx'
import { Card, Page } from '../../design/layout.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { Failure } from '../../shell/failure.tsx'
import { keepSamples, keptSamples } from '../../shell/kept-samples.ts'
import { MembersOnly } from '../../shell/members-only.tsx'
import { useAccount, useMay } from '../../shell/session.tsx'
import { useChange } from '../../shell/use-change.ts'
import { type About, AboutFields, splitTags } from './about-form.tsx'
import { SuggestForm } from './suggest-form.tsx'
import { GuardUnsaved } from './unsaved.tsx'
import { useSamples } from './use-samples.ts'
import { Trail } from './view-frame.tsx'
import style from './views.module.css'
import { type DefinitionDraft, draftOf, Workbench } from './workbench.tsx'

const route = getRouteApi('/signed-in/in/$account/views/new')

/** From data to a draft: suggest columns, or write them. */
export function NewViewPage() {
  if (useMay('member')) return <NewView />
  return (
    <Page trail={<Trail />} title="New view">
      <MembersOnly />
    </Page>
  )
}

function NewView() {
  const account = useAccount()
  const navigate = route.useNavigate()
  const [name, setName] = useState('')
  const [about, setAbout] = useState<About>({ description: '', tags: '' })
  const [draft, setDraft] = useState<DefinitionDraft>(draftOf('yaml'))
  const samples = useSamples('')
  const saved = useRef(false)
  const endpoints = useQuery(endpointsQuery(account))
  const create = useChange({
    call: () =>
      createView({
        name,
        description: about.description,
        tags: splitTags(about.tags),
        definition: draft.text,
        format: draft.format,
      }),
    leave: (made) => {
      saved.current = true
      // The samples stay with the view that they were tried on.
      keepSamples(account, made.name, keptSamples(account, ''))
      keepSamples(account, '', '')
    },
    changes: [viewsKey(account)],
    done: (made) => navigate({ to: '/in/$account/views/$view', params: { account, view: made.id } }),
    said: (made) => `Draft of ${made.name} created`,
  })
  /** Takes what is typed. What was refused before is corrected now. */
  const edits =
    <T,>(set: (value: T) => void) =>
    (value: T) => {
      set(value)
      if (create.isError) create.reset()
    }
  const nameError = create.error instanceof ApiError ? create.error.fieldError('name') : undefined
  return (
    <Page
      trail={<Trail />}
      title="New view"
      about="Paste a few records, or take the last ones of an endpoint. Inlet suggests columns, and you keep those that you need."
      actions={
        <Button
          look="primary"
          busy={create.isPending}
          disabled={name === '' || draft.text.trim() === ''}
          onClick={() => create.mutate()}
        >
          Create draft
        </Button>
      }
    >
      <GuardUnsaved isUnsaved={() => !saved.current && draft.text.trim() !== ''} />
      {create.isError && nameError === undefined && <Failure error={create.error} />}
      <Card>
        <div className={style.form}>
          <TextField
            label="Name"
            value={name}
            onChange={edits(setName)}
            error={nameError}
            required
            maxLength={64}
            autoComplete="off"
            placeholder="orders"
            hint="Lowercase letters, digits and underscores. It names the folder in your bucket."
          />
          <AboutFields about={about} onChange={edits(setAbout)} />
        </div>
      </Card>
      {endpoints.isPending ? (
        <Skeleton rows={8} height="figure" />
      ) : (
        <>
          <SuggestForm
            endpoints={endpoints.data?.items ?? []}
            samples={samples.records}
            draft={draft}
            onSuggest={edits(setDraft)}
          />
          <Workbench samples={samples} versions={[]} draft={draft} onChange={edits(setDraft)} />
        </>
      )}
    </Page>
  )
}
