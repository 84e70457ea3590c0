import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Fingerprint } from 'lucide-react'
import { useState } from 'react'
import { addPasskey, canUsePasskeys, type Passkey, passkeysQuery, removePasskey } from '../../api/sign-in.ts'
import { Button } from '../../design/button.tsx'
import { Confirm } from '../../design/confirm.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { Table, type TableColumn } from '../../design/table.tsx'
import { Time } from '../../design/time.tsx'
import { say } from '../../design/toast.tsx'
import { Failure } from '../../shell/failure.tsx'
import { browserName } from './browser-name.ts'

export function Passkeys() {
  const queries = useQueryClient()
  const passkeys = useQuery(passkeysQuery)
  const [removing, setRemoving] = useState<Passkey | undefined>()
  const add = useMutation({
    mutationFn: () => addPasskey(browserName(navigator.userAgent)),
    onSuccess: async () => {
      await queries.invalidateQueries(passkeysQuery)
      say('Passkey added')
    },
  })
  const remove = useMutation({
    mutationFn: ({ id }: Passkey) => removePasskey(id),
    onSuccess: async () => {
      setRemoving(undefined)
      await queries.invalidateQueries(passkeysQuery)
      say('Passkey removed')
    },
  })
  const columns: readonly TableColumn<Passkey>[] = [
    { title: 'Made with', cell: ({ name }) => name ?? 'Passkey' },
    { title: 'Added', cell: ({ createdAt }) => <Time at={createdAt} /> },
    {
      title: '',
      figure: true,
      cell: (each) => (
        <Button size="small" onClick={() => setRemoving(each)}>
          Remove
        </Button>
      ),
    },
  ]
  const addButton = canUsePasskeys && (
    <Button icon={<Fingerprint aria-hidden="true" />} busy={add.isPending} onClick={() => add.mutate()}>
      Add a passkey
    </Button>
  )
  if (passkeys.isError) return <Failure error={passkeys.error} onRetry={() => void passkeys.refetch()} />
  if (passkeys.data === undefined) return <Skeleton rows={2} height="figure" />
  return (
    <>
      {add.isError && <Failure error={add.error} />}
      <Table
        label="Passkeys"
        columns={columns}
        rows={passkeys.data}
        keyOf={({ id }) => id}
        empty={
          <EmptyState icon={<Fingerprint />} title="No passkey yet" {...(addButton && { action: addButton })}>
            {canUsePasskeys ? (
              <p>A passkey replaces the password on this device, and on those that share it.</p>
            ) : (
              <p>
                Passkeys need HTTPS or localhost, and a host name instead of an IP address. Set <code>INLET_BASE_URL</code>, for
                example to <code>http://localhost:8080</code>, and open the console there.
              </p>
            )}
          </EmptyState>
        }
        footer={addButton}
      />
      <Confirm
        open={removing !== undefined}
        onClose={() => setRemoving(undefined)}
        title={`Remove the passkey “${removing?.name ?? 'Passkey'}”?`}
        action="Remove passkey"
        onConfirm={() => removing && remove.mutate(removing)}
        call={remove}
      >
        <p>You cannot sign in with it any more. Make sure that you have another way. Open sessions stay.</p>
      </Confirm>
    </>
  )
}
