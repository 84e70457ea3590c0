import { useNavigate } from '@tanstack/react-router'
import { archiveView, createVersion, deleteDraft, publishView, type ViewDetail, viewsKey } from '../../api/views.ts'
import { Button } from '../../design/button.tsx'
import { Dialog } from '../../design/dialog.tsx'
import { formatCount } from '../../design/format.ts'
import { AskingButton } from '../../shell/asking-button.tsx'
import { ButtonLink } from '../../shell/button-link.tsx'
import { Failure } from '../../shell/failure.tsx'
import { useAccount } from '../../shell/session.tsx'
import { useChange } from '../../shell/use-change.ts'

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

function NewVersion({ view }: OfView) {
  const account = useAccount()
  const navigate = useNavigate()
  const create = useChange({
    call: () => createVersion(view.id, view.version),
    changes: [viewsKey(account)],
    done: (made) => navigate({ to: '/in/$account/views/$view/edit', params: { account, view: made.id } }),
    said: (made) => `Draft of version ${made.version} created`,
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
  const account = useAccount()
  return (
    <AskingButton
      title={`Publish version ${view.version} of ${view.name}?`}
      action="Publish version"
      tone="primary"
      change={{
        call: async () => {
          await before()
          return publishView(view.id)
        },
        leave: onPublished,
        changes: [viewsKey(account)],
        said: `Version ${view.version} published`,
      }}
    >
      <p>
        Its definition can no longer change then, so that its files always have the same columns. Attach it to an endpoint next.
      </p>
    </AskingButton>
  )
}

function ArchiveVersion({ view }: OfView) {
  const account = useAccount()
  const attached = view.endpoints.length
  return (
    <AskingButton
      title={`Archive version ${view.version} of ${view.name}?`}
      action="Archive version"
      change={{
        call: () => archiveView(view.id),
        changes: [viewsKey(account)],
        said: `Version ${view.version} archived`,
      }}
    >
      <p>
        {attached === 0
          ? 'It can never be attached again. '
          : `It is detached from ${formatCount(attached)} ${attached === 1 ? 'endpoint' : 'endpoints'} and can never be attached again. `}
        Files that it wrote stay in your bucket. Segments that were sealed before still get its output.
      </p>
    </AskingButton>
  )
}

function DeleteDraft({ view }: OfView) {
  const account = useAccount()
  const navigate = useNavigate()
  return (
    <AskingButton
      title={`Delete the draft of version ${view.version}?`}
      action="Delete draft"
      change={{
        call: () => deleteDraft(view.id),
        leave: () => navigate({ to: '/in/$account/views', params: { account } }),
        changes: [viewsKey(account)],
        said: `Draft of version ${view.version} deleted`,
      }}
    >
      <p>Its definition is lost. Other versions of {view.name} stay as they are.</p>
    </AskingButton>
  )
}
