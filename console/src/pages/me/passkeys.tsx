import { useQuery } from '@tanstack/react-query'
import { Fingerprint } from 'lucide-react'
import { addPasskey, canUsePasskeys, type Passkey, passkeysQuery, removePasskey } from '../../api/sign-in.ts'
import { Button } from '../../design/button.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { Table, type TableColumn } from '../../design/table.tsx'
import { Time } from '../../design/time.tsx'
import { AskingButton } from '../../shell/asking-button.tsx'
import { Failure } from '../../shell/failure.tsx'
import { useChange } from '../../shell/use-change.ts'
import { browserName } from './browser-name.ts'

export function Passkeys() {
  const passkeys = useQuery(passkeysQuery)
  const changes = [passkeysQuery.queryKey]
  const add = useChange({ call: () => addPasskey(browserName(navigator.userAgent)), changes, said: 'Passkey added' })
  const columns: readonly TableColumn<Passkey>[] = [
    { title: 'Made with', cell: ({ name }) => name ?? 'Passkey' },
    { title: 'Added', cell: ({ createdAt }) => <Time at={createdAt} /> },
    {
      title: '',
      figure: true,
      cell: ({ id, name }) => (
        <AskingButton
          size="small"
          label="Remove"
          title={`Remove the passkey “${name ?? 'Passkey'}”?`}
          action="Remove passkey"
          change={{ call: () => removePasskey(id), changes, said: 'Passkey removed' }}
        >
          <p>You cannot sign in with it any more. Make sure that you have another way. Open sessions stay.</p>
        </AskingButton>
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
    </>
  )
}
