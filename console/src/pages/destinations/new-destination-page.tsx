import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { createDestination, destinationsKey, type ObjectStore, objectStoreQuery } from '../../api/destinations.ts'
import { Callout } from '../../design/callout.tsx'
import { Card, Page } from '../../design/layout.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { Failure } from '../../shell/failure.tsx'
import { MembersOnly } from '../../shell/members-only.tsx'
import { useAccount } from '../../shell/session.tsx'
import { useChange } from '../../shell/use-change.ts'
import { emptyDraft, settingsOf } from './destination-draft.ts'
import { DestinationForm } from './destination-form.tsx'
import { DestinationsLink } from './destinations-link.tsx'

/** The first step of the wizard. The screen of the new destination has the others. */
export function NewDestinationPage() {
  return (
    <Page
      title="New destination"
      trail={<DestinationsLink />}
      about="The bucket for your data. The next step lets Inlet write to it."
    >
      <MembersOnly>
        <Settings />
      </MembersOnly>
    </Page>
  )
}

function Settings() {
  const store = useQuery(objectStoreQuery(useAccount()))
  return (
    <>
      {store.isError && <Failure error={store.error} onRetry={() => void store.refetch()} />}
      {store.isPending && <Skeleton rows={5} height="figure" />}
      {store.data !== undefined && (
        <>
          {store.data.kind === 'directory' && (
            <Callout title="Files of this installation">
              This installation keeps objects as files in its data directory, so a destination needs no role. To write to S3, its
              operator sets <code>INLET_OBJECT_STORE=s3</code>.
            </Callout>
          )}
          {store.data.allowed_buckets?.length === 0 && (
            <Callout kind="warn" title="This account may use no bucket yet">
              The operator of this installation says which buckets an account uses, on the screen of the account. You can create
              the destination before.
            </Callout>
          )}
          <Card>
            <CreateForm store={store.data} />
          </Card>
        </>
      )}
    </>
  )
}

function CreateForm({ store }: { readonly store: ObjectStore }) {
  const account = useAccount()
  const navigate = useNavigate()
  const [draft, setDraft] = useState(() => emptyDraft(store))
  const create = useChange({
    call: () => createDestination(settingsOf(draft, store)),
    changes: [destinationsKey(account)],
    done: ({ id }) => navigate({ to: '/in/$account/destinations/$destination', params: { account, destination: id } }),
  })
  return <DestinationForm draft={draft} onChange={setDraft} store={store} call={create} action="Create destination" />
}
