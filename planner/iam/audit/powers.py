"""The actions by which one identity of AWS becomes more than it is: tables for the rules 2xx.  Facts; how they are judged stands with the rules.

Kinds are those of the ARN that the action is checked against; `ANY` where a stranger's resource of whatever kind will do.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.iam.audit.witness import ANY

#: what starts a machine that carries a role
MACHINES = (
    ("ec2:RunInstances", "instance"),
    ("ec2:CreateFleet", ANY),
    ("autoscaling:CreateAutoScalingGroup", ANY),
    ("autoscaling:CreateLaunchConfiguration", ANY),
    ("autoscaling:UpdateAutoScalingGroup", ANY),
    ("elasticmapreduce:RunJobFlow", ANY),
)
SPOT = (("ec2:RequestSpotInstances", ANY), ("ec2:RequestSpotFleet", ANY))


@dataclass(frozen=True, slots=True)
class Service:
    """One that runs code under a role it is handed: who receives the role, and any of these actions hands it over."""

    principal: str
    actions: tuple[str, ...]


SERVICES = (
    Service("lambda.amazonaws.com", ("lambda:CreateFunction", "lambda:UpdateFunctionConfiguration")),
    Service("glue.amazonaws.com", ("glue:CreateDevEndpoint", "glue:CreateJob", "glue:UpdateJob", "glue:CreateSession")),
    Service(
        "cloudformation.amazonaws.com",
        (
            "cloudformation:CreateStack",
            "cloudformation:UpdateStack",
            "cloudformation:CreateStackSet",
            "cloudformation:UpdateStackSet",
        ),
    ),
    Service("datapipeline.amazonaws.com", ("datapipeline:CreatePipeline",)),
    Service(
        "sagemaker.amazonaws.com",
        ("sagemaker:CreateNotebookInstance", "sagemaker:CreateTrainingJob", "sagemaker:CreateProcessingJob"),
    ),
    Service(
        "ecs-tasks.amazonaws.com",
        ("ecs:RegisterTaskDefinition", "ecs:RunTask", "ecs:StartTask", "batch:RegisterJobDefinition"),
    ),
    Service("elasticmapreduce.amazonaws.com", ("elasticmapreduce:RunJobFlow",)),
    Service("codebuild.amazonaws.com", ("codebuild:CreateProject", "codebuild:UpdateProject")),
    Service("tasks.apprunner.amazonaws.com", ("apprunner:CreateService",)),
    Service("bedrock-agentcore.amazonaws.com", ("bedrock-agentcore:CreateCodeInterpreter",)),
    Service("states.amazonaws.com", ("states:CreateStateMachine", "states:UpdateStateMachine")),
)

#: writing or attaching policies, each on what
POLICY_WRITERS = (
    ("iam:CreatePolicyVersion", "policy"),
    ("iam:SetDefaultPolicyVersion", "policy"),
    ("iam:AttachUserPolicy", "user"),
    ("iam:AttachGroupPolicy", "group"),
    ("iam:AttachRolePolicy", "role"),
    ("iam:PutUserPolicy", "user"),
    ("iam:PutGroupPolicy", "group"),
    ("iam:PutRolePolicy", "role"),
    ("iam:AddUserToGroup", "group"),
)
#: making what somebody else signs in with
CREDENTIAL_MAKERS = ("iam:CreateAccessKey", "iam:CreateLoginProfile", "iam:UpdateLoginProfile")
#: running code where a role already is: all actions of a row together
CODE_RUNNERS: tuple[tuple[tuple[str, str], ...], ...] = (
    (("ssm:SendCommand", ANY),),
    (("ssm:StartSession", ANY),),
    (("ec2-instance-connect:SendSSHPublicKey", ANY),),
    (("ec2-instance-connect:SendSerialConsoleSSHPublicKey", ANY),),
    (("ecs:ExecuteCommand", ANY),),
    (("lambda:UpdateFunctionCode", ANY),),
    (("glue:UpdateDevEndpoint", ANY),),
    (("bedrock-agentcore:StartCodeInterpreterSession", ANY), ("bedrock-agentcore:InvokeCodeInterpreter", ANY)),
    (("cloudformation:CreateChangeSet", ANY), ("cloudformation:ExecuteChangeSet", ANY)),
    (("sagemaker:CreatePresignedNotebookInstanceUrl", ANY),),
    (("sagemaker:UpdateNotebookInstance", ANY), ("sagemaker:StartNotebookInstance", ANY)),
)
#: what no role that is handed on should have unless who hands it on has it too
CONTROL = (
    *(action for action, _ in POLICY_WRITERS),
    *CREDENTIAL_MAKERS,
    *(action for action, _ in MACHINES[:2]),
    "ec2:CreateTags",
    "ec2:ModifyInstanceAttribute",
    "ec2:TerminateInstances",
    "iam:CreateRole",
    "iam:PassRole",
    "iam:UpdateAssumeRolePolicy",
    "lambda:UpdateFunctionCode",
    "organizations:CreateAccount",
    "s3:PutBucketPolicy",
    "ssm:SendCommand",
    "sts:AssumeRole",
)
#: one grave action of each of eight services: who may do nearly all of them is an administrator
ADMINISTERS = (
    "cloudformation:DeleteStack",
    "dynamodb:DeleteTable",
    "ec2:TerminateInstances",
    "iam:AttachRolePolicy",
    "kms:ScheduleKeyDeletion",
    "lambda:UpdateFunctionCode",
    "rds:DeleteDBInstance",
    "s3:DeleteBucket",
)
#: AWS's own policies that make an administrator, by the end of their ARN
MANAGED = ("AdministratorAccess", "IAMFullAccess", "PowerUserAccess")
#: of a node also these: a whole service
MANAGED_ON_NODES = ("AmazonEC2FullAccess", "AmazonS3FullAccess", "AmazonSSMFullAccess")
