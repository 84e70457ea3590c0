import { useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useState } from 'react'
import { changeDraft, type View, type ViewDetail, viewQuery, viewsKey } from '../../api/views.ts'
import { Badge } from '../../design/badge.tsx'
import { Button } from '../../design/button.tsx'
import { Callout } from '../../design/callout.tsx'
import { Card, Page } from '../../design/layout.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { StatusBadge } from '../../design/status-badge.tsx'
import { say } from '../../design/toast.tsx'
import { ButtonLink } from '../../shell/button-link.tsx'
import { Failure } from '../../shell/failure.tsx'
import { MembersOnly } from '../../shell/members-only.tsx'
import { useAccount, useMay } from '../../shell/session.tsx'
import { useChange } from '../../shell/use-change.ts'
import { type About, AboutFields, splitTags } from './about-form.tsx'
import { StoredComparison } from './stored-comparison.tsx'
import { GuardUnsaved } from './unsaved.tsx'
import { useSamples } from './use-samples.ts'
import { PublishDraft } from './view-actions.tsx'
import { Trail, ViewLoadFailure } from './view-frame.tsx'
import { type DefinitionDraft, draftOf, Workbench } from './workbench.tsx'

const route = getRouteApi('/signed-in/in/$account/views/$view/edit')

/** The editor of a draft. */
export function EditViewPage() {
  const account = useAccount()
  const { view: id } = route.useParams()
  const view = useQuery(viewQuery(account, id))
  const mayChange = useMay('member')
  const open = (
    <ButtonLink to="/in/$account/views/$view" params={{ account, view: id }}>
      Open version
    </ButtonLink>
  )
  if (mayChange && view.data !== undefined && view.data.status === 'draft') return <Editor key={id} view={view.data} />
  return (
    <Page title={view.data?.name ?? 'View'} trail={<Trail />}>
      {view.isError && <ViewLoadFailure query={view} />}
      {view.isPending && <Skeleton rows={6} height="figure" />}
      {view.isSuccess && (
        <MembersOnly instead={open}>
          <Callout title={`Version ${view.data.version} is ${view.data.status}`} action={open}>
            <p>Only drafts can change. Create the next version to change the columns.</p>
          </Callout>
        </MembersOnly>
      )}
    </Page>
  )
}

type Edited = { readonly draft: DefinitionDraft; readonly about: About }

function editedOf(view: View): Edited {
  return {
    draft: draftOf(view.format, view.definition),
    about: { description: view.description, tags: view.tags.join(', ') },
  }
}

const isSame = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b)

function Editor({ view }: { readonly view: ViewDetail }) {
  const account = useAccount()
  const queries = useQueryClient()
  const navigate = route.useNavigate()
  const samples = useSamples(view.name)
  const [edited, setEdited] = useState<Edited>(() => editedOf(view))
  /** Text at the last save, and the form of it that the API stored. */
  const [saved, setSaved] = useState({ edited, stored: editedOf(view) })
  const isUnsaved = !isSame(edited, saved.edited)
  const changedElsewhere = !isSame(editedOf(view), saved.stored)
  const save = useChange({
    call: ({ draft, about }: Edited) =>
      changeDraft(view.id, {
        description: about.description,
        tags: splitTags(about.tags),
        definition: draft.text,
        format: draft.format,
      }),
    leave: (stored, sent) => {
      queries.setQueryData(viewQuery(account, view.id).queryKey, (detail) => detail && { ...detail, ...stored })
      setSaved({ edited: sent, stored: editedOf(stored) })
    },
    changes: [viewsKey(account)],
  })
  const keptByShadows = save.data?.warnings.filter(({ code }) => code === 'shadow_not_changed') ?? []
  const edit = (change: Partial<Edited>) => {
    setEdited({ ...edited, ...change })
    // The error is about the text before this edit.
    if (save.isError) save.reset()
  }
  const load = () => {
    const stored = editedOf(view)
    setEdited(stored)
    setSaved({ edited: stored, stored })
  }
  return (
    <Page
      trail={<Trail />}
      title={
        <>
          {view.name}
          <Badge>version {view.version}</Badge>
          <StatusBadge status="draft" />
        </>
      }
      actions={
        <>
          <ButtonLink to="/in/$account/views/$view" params={{ account, view: view.id }}>
            Close
          </ButtonLink>
          <Button
            busy={save.isPending}
            disabled={!isUnsaved}
            onClick={() => save.mutate(edited, { onSuccess: () => say('Draft saved') })}
          >
            Save draft
          </Button>
          <PublishDraft
            view={view}
            before={() => (isUnsaved ? save.mutateAsync(edited) : Promise.resolve())}
            onPublished={() => navigate({ to: '/in/$account/views/$view', params: { account, view: view.id } })}
          />
        </>
      }
    >
      <GuardUnsaved isUnsaved={() => isUnsaved && !save.isPending} />
      {save.isError && <Failure error={save.error} />}
      {keptByShadows.length > 0 && (
        <Callout kind="warn" title="Saved, but a shadow keeps its definition">
          {keptByShadows.map(({ message }) => (
            <p key={message}>{message}</p>
          ))}
        </Callout>
      )}
      {changedElsewhere && (
        <Callout
          kind="warn"
          title="Somebody else changed this draft"
          action={
            <Button size="small" onClick={load}>
              Load their version
            </Button>
          }
        >
          <p>Saving yours replaces theirs. Loading theirs discards what you typed since your last save.</p>
        </Callout>
      )}
      <Card>
        <AboutFields about={edited.about} onChange={(about) => edit({ about })} />
      </Card>
      <Workbench samples={samples} versions={view.versions} draft={edited.draft} onChange={(draft) => edit({ draft })} />
      {view.versions.some(({ status }) => status === 'published') && (
        <StoredComparison
          viewId={view.id}
          compared={{ definition: edited.draft.text, format: edited.draft.format }}
          about="What this definition makes of records of the last 24 hours, beside the published version. Nothing is saved."
        />
      )}
    </Page>
  )
}
