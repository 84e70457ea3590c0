import { type ComponentProps, useState } from 'react'
import { Button } from '../design/button.tsx'
import { Confirm } from '../design/confirm.tsx'
import { type Change, useChange } from './use-change.ts'

type AskingButtonProps<Result> = Omit<ComponentProps<typeof Confirm>, 'open' | 'onClose' | 'onConfirm' | 'call'> &
  Pick<ComponentProps<typeof Button>, 'look' | 'size' | 'disabled' | 'aria-label'> & {
    /** Text on the button itself; `action` if not set. */
    readonly label?: string
    readonly change: Change<void, Result>
  }

/** A button that asks before it changes something. */
export function AskingButton<Result>({ label, change, ...props }: AskingButtonProps<Result>) {
  const { look = 'plain', size = 'normal', disabled, 'aria-label': ariaLabel, ...question } = props
  const [asked, setAsked] = useState(false)
  const close = () => setAsked(false)
  const call = useChange<void, Result>({
    ...change,
    leave: (...made) => {
      close()
      return change.leave?.(...made)
    },
  })
  return (
    <>
      <Button {...{ look, size, disabled, 'aria-label': ariaLabel }} onClick={() => setAsked(true)}>
        {label ?? question.action}
      </Button>
      <Confirm {...question} open={asked} onClose={close} onConfirm={() => call.mutate()} call={call} />
    </>
  )
}
