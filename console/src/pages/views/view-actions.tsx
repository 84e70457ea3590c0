import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { archiveView, createVersion, deleteDraft, publishView, type ViewDetail, viewsKey } from '../../api/views.ts'
import { Button } from '../../design/button.tsx'
import { Confirm } from '../../design/confirm.tsx'
import { Dialog } from '../../design/dialog.tsx'
import { formatCount } from '../../design/format.ts'
import { say } from '../../design/toast.tsx'
import { ButtonLink } from '../../shell/button-link.tsx'
import { Failure } from '../../shell/failure.tsx'
import { useAccount } from '../../shell/session.tsx'

/** Actions on a version, by its state. */
export function ViewActions({ view }: { readonly view: ViewDetail }) {
  if (view.status === 'draft') {
    return (
      <>
        <DeleteDraft view={view} />
        <PublishDraft view={view} />
        <EditDraft view={view} />
      </>
    )
  }
  return (
    <>
      {view.status === 'published' && <ArchiveVersion view={view} />}
      <NewVersion view={view} />
    </>
  )
}

type OfView = { readonly view: ViewDetail }

function useRefresh(): () => Promise<void> {
  const account = useAccount()
  const queries = useQueryClient()
  return () => queries.invalidateQueries({ queryKey: viewsKey(account) })
}

function NewVersion({ view }: OfView) {
  const account = useAccount()
  const navigate = useNavigate()
  const refresh = useRefresh()
  const create = useMutation({
    mutationFn: () => createVersion(view.id, view.version),
    onSuccess: async (made) => {
      await refresh()
      say(`Draft of version ${made.version} created`)
      await navigate({ to: '/in/$account/views/$view/edit', params: { account, view: made.id } })
    },
  })
  return (
    <>
      <Button look="primary" busy={create.isPending} onClick={() => create.mutate()}>
        Create next version
      </Button>
      <Dialog open={create.isError} onClose={create.reset} title="The version was not created">
        <Failure error={create.error} onRetry={() => create.mutate()} />
      </Dialog>
    </>
  )
}

function EditDraft({ view }: OfView) {
  const account = useAccount()
  return (
    <ButtonLink look="primary" to="/in/$account/views/$view/edit" params={{ account, view: view.id }}>
      Edit draft
    </ButtonLink>
  )
}

type PublishDraftProps = {
  readonly view: Pick<ViewDetail, 'id' | 'name' | 'version'>
  /** Saves what was typed. */
  readonly before?: () => Promise<unknown>
  readonly onPublished?: () => Promise<unknown>
}

const nothing = () => Promise.resolve()

export function PublishDraft({ view, before = nothing, onPublished = nothing }: PublishDraftProps) {
  const [asked, setAsked] = useState(false)
  const refresh = useRefresh()
  const publish = useMutation({
    mutationFn: async () => {
      await before()
      return publishView(view.id)
    },
    onSuccess: async () => {
      setAsked(false)
      await onPublished()
      await refresh()
      say(`Version ${view.version} published`)
    },
  })
  return (
    <>
      <Button onClick={() => setAsked(true)}>Publish version</Button>
      <Confirm
        open={asked}
        onClose={() => setAsked(false)}
        title={`Publish version ${view.version} of ${view.name}?`}
        action="Publish version"
        tone="primary"
        onConfirm={() => publish.mutate()}
        call={publish}
      >
        <p>
          Its definition can no longer change then, so that its files always have the same columns. Attach it to an endpoint next.
        </p>
      </Confirm>
    </>
  )
}

function ArchiveVersion({ view }: OfView) {
  const [asked, setAsked] = useState(false)
  const refresh = useRefresh()
  const archive = useMutation({
    mutationFn: () => archiveView(view.id),
    onSuccess: async () => {
      setAsked(false)
      await refresh()
      say(`Version ${view.version} archived`)
    },
  })
  const attached = view.endpoints.length
  return (
    <>
      <Button onClick={() => setAsked(true)}>Archive version</Button>
      <Confirm
        open={asked}
        onClose={() => setAsked(false)}
        title={`Archive version ${view.version} of ${view.name}?`}
        action="Archive version"
        onConfirm={() => archive.mutate()}
        call={archive}
      >
        <p>
          {attached === 0
            ? 'It can never be attached again. '
            : `It is detached from ${formatCount(attached)} ${attached === 1 ? 'endpoint' : 'endpoints'} and can never be attached again. `}
          Files that it wrote stay in your bucket. Segments that were sealed before still get its output.
        </p>
      </Confirm>
    </>
  )
}

function DeleteDraft({ view }: OfView) {
  const [asked, setAsked] = useState(false)
  const account = useAccount()
  const navigate = useNavigate()
  const refresh = useRefresh()
  const remove = useMutation({
    mutationFn: () => deleteDraft(view.id),
    onSuccess: async () => {
      setAsked(false)
      say(`Draft of version ${view.version} deleted`)
      await navigate({ to: '/in/$account/views', params: { account } })
      await refresh()
    },
  })
  return (
    <>
      <Button onClick={() => setAsked(true)}>Delete draft</Button>
      <Confirm
        open={asked}
        onClose={() => setAsked(false)}
        title={`Delete the draft of version ${view.version}?`}
        action="Delete draft"
        onConfirm={() => remove.mutate()}
        call={remove}
      >
        <p>Its definition is lost. Other versions of {view.name} stay as they are.</p>
      </Confirm>
    </>
  )
}
